"""Very many clients in one experiment, a small share of them in each round: opening a round, rows and memory.

The document holds ``machine``, ``clients``, ``asked_per_round``, ``databases`` and ``bounds``. For SQLite and for
PostgreSQL (the server that ``FERRET_TEST_POSTGRESQL`` names, else ``skipped``), ``databases`` has of an experiment with
a tiny model in ``ferret serve``, all of its processes real, what ``rounds`` of the benchmark ``control`` has:
``open_ms``, p50, p99 and max from a round's commit until the next one is open; ``growth``, what a round adds to the
rows of the database and to the memory of each process, in the first half of the rounds and in the second;
``database_bytes``, what it takes on the disk at the end; and

    seconds_per_client   from the first round's opening to the end, over the number of trainings
    digest_equal         whether the last model is the one that ``simulate`` ends with

``bounds`` holds, of the first database, ``rows_ratio``: rows that a round adds in the second half of the rounds over
those in the first; and ``digests_differ``: in how many databases the model is another one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, final

import torch

from ferret_bench import base
from ferret_bench._control import databases, rounds, stack
from ferret_bench._control.workload import Workload
from ferret_bench.base import Asked, Document, Say, Table, shown
from ferret_bench.measure import bound
from ferret_bench.measure.bound import Bound, against
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.simulate import simulate

FRACTION = 0.05
BOUNDS = {"rows_ratio": Bound("<=", 1.05), "digests_differ": Bound("<=", 0)}


class Size(NamedTuple):
    """Sizes of the benchmark."""

    clients: int
    rounds: int


FULL = Size(clients=10_000, rounds=60)
"""A process's heap reaches its size only after some thirty rounds: the second half of these shows further growth."""
QUICK = Size(clients=300, rounds=3)


@final
class Benchmark(base.Benchmark):
    """``ferret bench clients``"""

    def measure(self, say: Say, asked: Asked) -> Document:
        names = databases.NAMES[:1] if asked.bounds else databases.NAMES
        size = QUICK if asked.quick else FULL
        with tempfile.TemporaryDirectory(prefix="ferret-bench-") as scratch:
            folder = Path(scratch)
            spec = _spec(folder, size)
            say(f"the simulation: {size.rounds} rounds of {FRACTION:.0%} of {size.clients} clients")
            with _threads(stack.THREADS):
                expected = simulate(spec).digest
            found = {
                name: _database(name, folder / name, spec, expected, asked.max_seconds / len(names), say)
                for name in names
            }
        return {
            "clients": size.clients,
            "asked_per_round": round(FRACTION * size.clients),
            "databases": found,
            "bounds": against(BOUNDS, _bounded(found)),
        }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        return [_rounds(document["databases"]), _memory(document["databases"]), bound.table(document)]


@contextmanager
def _threads(number: int) -> Generator[None]:
    """Sets torch's number of threads within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _spec(folder: Path, size: Size) -> ExperimentSpec:
    """Returns a specification with a fraction of the clients in each round."""
    participants = {"simulated": size.clients, "fraction": FRACTION}
    return Workload(folder / "workload", size.clients).spec(size.rounds, participants=participants)


def _database(
    name: str, folder: Path, spec: ExperimentSpec, expected: str, max_seconds: float, say: Say
) -> dict[str, Any]:
    if reason := databases.missing(name):
        say(f"{name}: {reason}")
        return {"skipped": reason}
    say(f"{name}: the same in a service")
    begin = perf_counter()
    found = rounds.of_experiment(spec, name, folder, max_seconds, say)
    trainings = spec.rounds * FRACTION * spec.participants.simulated
    return found | {
        "seconds_per_client": (perf_counter() - begin) / trainings,
        "digest_equal": found["digest"] == expected,
    }


def _bounded(found: Mapping[str, Any]) -> dict[str, float | None]:
    measured = _measured(found)
    first, second = next(iter(measured.values()))["growth"]["rows_per_round"]
    return {
        "rows_ratio": second / first if first and second else None,
        "digests_differ": sum(not each["digest_equal"] for each in measured.values()),
    }


def _rounds(found: Mapping[str, Any]) -> Table:
    columns = [
        "database",
        "open p50, ms",
        "p99",
        "max",
        "rows per round, first half",
        "second half",
        "MB at the end",
        "ms per client",
    ]
    rows = [
        [
            name,
            *(f"{each['open_ms'][rank]:.0f}" for rank in ("p50", "p99", "max")),
            *(shown(value) for value in each["growth"]["rows_per_round"]),
            f"{each['database_bytes'] / 1e6:.1f}",
            f"{1000 * each['seconds_per_client']:.1f}",
        ]
        for name, each in _measured(found).items()
    ]
    return Table("rounds", columns, rows)


def _memory(found: Mapping[str, Any]) -> Table:
    columns = ["database", "process", "MiB at the end", "kB per round, first half", "second half"]
    rows = [
        [name, process, f"{each['growth']['bytes'][process] / 2**20:.0f}", *(_kilobytes(value) for value in halves)]
        for name, each in _measured(found).items()
        for process, halves in each["growth"]["bytes_per_round"].items()
    ]
    return Table("memory", columns, rows)


def _kilobytes(value: float | None) -> str | None:
    return None if value is None else f"{value / 1000:,.0f}"


def _measured(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in found.items() if "skipped" not in each}
