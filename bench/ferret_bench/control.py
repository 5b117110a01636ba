"""The control plane: what the service adds to the mathematics of a round, in time, in rows and in memory.

The document holds ``machine``, ``databases`` and ``bounds``. For SQLite and for PostgreSQL (the server that
``FERRET_TEST_POSTGRESQL`` names, else ``skipped``), ``databases`` has

    rounds   an experiment of a tiny model in ``ferret serve``, all of its processes real: p50, p99 and max per round of
             ``control_ms``     from the last report to the opening of the next round, without the mathematics
             ``commit_ms``      its first part, until the round is committed
             ``open_ms``        its second part, until the next one is open
             ``mathematics_ms`` the reconstruction, which is not counted;
             and ``growth``: what a round adds in the first half of the rounds and in the second, as ``rows_per_round``
             of the database and ``bytes_per_round`` of each process; ``database_bytes``, on the disk at the end
    wide     one round of ``assignments`` assignments: time to open it, to lease and to accept the first and the last
             tenth of them, and of the one transaction that freezes it

Other work on the machine makes all times longer: they are bounds from above unless it is idle.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

from ferret_bench import base
from ferret_bench._control import databases, rounds, wide
from ferret_bench.base import Asked, Document, Say, Table
from ferret_bench.measure import bound
from ferret_bench.measure.bound import Bound, against

EMBEDDED = "sqlite"
BOUNDS = {"control_p50_ms": Bound("<=", 50), "control_p99_ms": Bound("<=", 200)}


class Size(NamedTuple):
    """Sizes of the benchmark."""

    clients: int
    rounds: int
    assignments: int


FULL = Size(clients=8, rounds=105, assignments=1000)
QUICK = Size(clients=2, rounds=3, assignments=10)


@final
class Benchmark(base.Benchmark):
    """``ferret dev bench control``"""

    def measure(self, say: Say, asked: Asked) -> Document:
        names = [EMBEDDED] if asked.bounds else list(databases.NAMES)
        size = QUICK if asked.quick else FULL
        with tempfile.TemporaryDirectory(prefix="ferret-bench-") as folder:
            found = {
                name: _database(name, Path(folder) / name, size, asked.bounds, asked.max_seconds / len(names), say)
                for name in names
            }
        return {"databases": found, "bounds": against(BOUNDS, _bounded(found[EMBEDDED]["rounds"]))}

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        found = document["databases"]
        return [_times(found), _growth(found), _wide(found), bound.table(document)]


def _database(name: str, folder: Path, size: Size, bounds: bool, max_seconds: float, say: Say) -> dict[str, Any]:
    if reason := databases.missing(name):
        say(f"{name}: {reason}")
        return {"skipped": reason}
    say(f"{name}: {size.rounds} rounds of {size.clients} clients")
    found = {"rounds": rounds.measure(name, folder, size.clients, size.rounds, max_seconds, say)}
    if bounds:
        return found
    say(f"{name}: one round of {size.assignments} assignments")
    return found | {"wide": wide.measure(name, folder / "wide", size.assignments)}


def _bounded(found: Mapping[str, Any]) -> dict[str, float | None]:
    return {f"control_{rank}_ms": found["control_ms"][rank] for rank in ("p50", "p99")}


def _times(found: Mapping[str, Any]) -> Table:
    columns = ["database", "part", "p50", "p99", "max"]
    rows = [
        [name, part, *(f"{measured['rounds'][f'{part}_ms'][rank]:.1f}" for rank in columns[2:])]
        for name, measured in _measured(found).items()
        for part in ("control", "commit", "open", "mathematics")
    ]
    return Table("ms per round, from the last report to the opening of the next", columns, rows)


def _growth(found: Mapping[str, Any]) -> Table:
    rows = [
        [name, what, *(None if value is None else f"{value:,.1f}" for value in halves)]
        for name, measured in _measured(found).items()
        for what, halves in _by_name(measured["rounds"]["growth"]).items()
    ]
    return Table("added by each round", ["database", "what", "first half", "second half"], rows)


def _by_name(growth: Mapping[str, Any]) -> dict[str, list[float | None]]:
    memory = {f"bytes of {process}": halves for process, halves in growth["bytes_per_round"].items()}
    return {"rows": growth["rows_per_round"]} | memory


def _wide(found: Mapping[str, Any]) -> Table:
    columns = ["database", "assignments", "open", "lease first", "last", "accept first", "last", "freeze"]
    rows = [[name, *_wide_row(part["wide"])] for name, part in _measured(found).items() if "wide" in part]
    return Table("ms of one round's transactions", columns, rows)


def _wide_row(wide: Mapping[str, Any]) -> list[Any]:
    ends = [wide[f"{what}_ms"][end] for what in ("lease", "accept") for end in ("first", "last")]
    return [wide["assignments"], *(f"{value:.1f}" for value in (wide["open_ms"], *ends, wide["freeze_ms"]))]


def _measured(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: measured for name, measured in found.items() if "skipped" not in measured}
