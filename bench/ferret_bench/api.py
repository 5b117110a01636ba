"""The API under the load of many participants: response times, and the cost for the process.

The real service (``processes`` of the API on one port, PostgreSQL where ``FERRET_TEST_POSTGRESQL`` names a server,
files, a broker) with enrolled participants in ten experiments. Half of an experiment's are drawn for each of its
rounds: they poll, get a lease and upload 8 kB; the others poll without result, with the tag of their last response,
as the SDK does. Rounds are committed and opened meanwhile, so that tags change. Then the same in parallel to
connections that send a byte a second, and at half of the rates. Each case starts afresh.

The document holds ``machine``, its ``load`` before and after (over 1, 5 and 15 minutes), ``bounds``, ``database``,
``participants``, the rates ``polls`` and ``uploads`` per second that were requested, and for each of ``cases``

    rates           the polls and uploads per second of this case
    dripping        connections of others with requests that arrive a byte a second
    polls, uploads  ``answered``, by ``statuses`` (``no work``: a question that should have found some), and ``ms``
                    (p50, p99, max) until the answer, from when it was due; 60 s for a request without one
    ms              the same of both together
    server_errors   answers with 5xx, connections that broke, and requests without an answer
    cpu             seconds of processor time that the API's processes took per second
    resident_bytes  of the API's processes together, each second
    growth_bytes_per_minute  their slope after the first third

All of it, load and database too, shares the machine: times are bounds from above unless it is idle.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import linear_regression
from time import perf_counter
from typing import Any, NamedTuple, final

from ferret_bench import base
from ferret_bench._api.load import slow_connections
from ferret_bench._api.participants import Cohort, enrol, turning
from ferret_bench._api.service import Service, serving
from ferret_bench._control import databases
from ferret_bench.base import Asked, Document, Say, Table
from ferret_bench.measure import bound
from ferret_bench.measure.background import sampled
from ferret_bench.measure.bound import Bound, against
from ferret_db import migrate
from ferret_db.database import Database
from ferret_runtime import file_descriptors

BOUNDS = {
    "p99_ms": Bound("<=", 250),
    "server_errors": Bound("<=", 0),
    "growth_mb_per_minute": Bound("<=", 10),
    "dripping_p99_ratio": Bound("<", 2),
}
RANKS = ("p50", "p99", "max")


class Size(NamedTuple):
    """Sizes and rates; rates are per second."""

    participants: int
    experiments: int
    polls: float
    uploads: float
    case_seconds: float
    dripping: int
    processes: int


FULL = Size(participants=10_000, experiments=10, polls=500, uploads=200, case_seconds=60, dripping=1000, processes=2)
QUICK = Size(participants=80, experiments=2, polls=25, uploads=10, case_seconds=3, dripping=5, processes=2)


@final
class Benchmark(base.Benchmark):
    """``ferret dev bench api``"""

    def measure(self, say: Say, asked: Asked) -> Document:
        load = os.getloadavg()
        file_descriptors.raise_limit()  # for this process, which holds the slow connections
        size = QUICK if asked.quick else FULL
        name = "sqlite" if databases.missing("postgresql") else "postgresql"
        with tempfile.TemporaryDirectory(prefix="ferret-bench-") as folder:
            cases = _cases(Path(folder), name, size, asked.max_seconds, say)
        return {
            "load": {"before": load, "after": os.getloadavg()},
            "database": name,
            **size._asdict(),
            "cases": cases,
            "bounds": against(BOUNDS, _bounded(cases)),
        }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        rows = [
            [
                f"{case['rates'][kind]:g}",
                case["dripping"],
                kind,
                case[kind]["answered"],
                json.dumps(case[kind]["statuses"]),
            ]
            + [f"{(case[kind]['ms'] or {}).get(rank, float('nan')):.1f}" for rank in RANKS]
            for case in document["cases"]
            for kind in ("polls", "uploads")
        ]
        costs = [
            [
                f"{case['rates']['polls']:g} + {case['rates']['uploads']:g}",
                case["dripping"],
                f"{case['cpu']:.2f}",
                case["resident_bytes"][-1] >> 20,
                f"{_megabytes(case):.1f}",
            ]
            for case in document["cases"]
        ]
        return [
            Table("ms until an answer", ["per second", "dripping", "requests", "answered", "statuses", *RANKS], rows),
            Table(
                "the API's processes",
                ["polls + uploads per second", "dripping", "cores", "MiB", "MB more per minute"],
                costs,
            ),
            bound.table(document),
        ]


def _cases(folder: Path, name: str, size: Size, max_seconds: float, say: Say) -> list[dict[str, Any]]:
    size = size._replace(case_seconds=min(size.case_seconds, max_seconds / 4))
    half = size._replace(polls=size.polls / 2, uploads=size.uploads / 2)
    cases = {"calm": (size, 0), "beside": (size, size.dripping), "half": (half, 0)}
    return [_case(folder / case, name, *what, say) for case, what in cases.items()]


def _case(folder: Path, name: str, size: Size, dripping: int, say: Say) -> dict[str, Any]:
    """Runs a case on a new service, so that unfinished work of one case does not affect the next."""
    folder.mkdir()
    with databases.empty(name, folder) as url:
        migrate.upgrade(url)
        database = Database(url)
        try:
            say(f"{size.participants} participants enrol ({name})")
            cohorts = enrol(database, size.experiments, size.participants)
            with serving(folder / "home", url, size.processes, say) as service, turning(database, cohorts):
                return _measured(service, cohorts, size, dripping, say)
        finally:
            database.dispose()


def _measured(service: Service, cohorts: Sequence[Cohort], size: Size, dripping: int, say: Say) -> dict[str, Any]:
    say(f"{size.polls:g} polls and {size.uploads:g} uploads a second for {size.case_seconds:g} s, {dripping} dripping")
    order = {**size._asdict(), "port": service.port, "cohorts": cohorts}
    slow = slow_connections(service.port, dripping) if dripping else nullcontext()
    with slow, subprocess.Popen([sys.executable, "-m", "ferret_bench._api.load"], **_PIPES) as load:
        begin, used = perf_counter(), service.cpu_seconds
        with sampled(lambda: service.resident_bytes, 1.0) as resident:
            found = json.loads(load.communicate(json.dumps(order))[0])
        cpu = (service.cpu_seconds - used) / (perf_counter() - begin)
    return {
        "rates": {"polls": size.polls, "uploads": size.uploads},
        "dripping": dripping,
        **found,
        "server_errors": sum(_errors(found[kind]["statuses"]) for kind in ("polls", "uploads")),
        "cpu": cpu,
        "resident_bytes": resident[1:-1],
        "growth_bytes_per_minute": _growth(resident[1:-1]),
    }


_PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


def _errors(statuses: Mapping[str, int]) -> int:
    """Counts responses with 5xx, and broken connections and timeouts, which have the exception's name."""
    return sum(count for status, count in statuses.items() if status[0] == "5" or status.endswith("Error"))


def _megabytes(case: Mapping[str, Any]) -> float:
    return case["growth_bytes_per_minute"] / 1e6


def _growth(resident: Sequence[int]) -> float:
    settled = resident[len(resident) // 3 :]
    return 60 * linear_regression(range(len(settled)), settled).slope if len(settled) > 1 else 0.0


def _bounded(cases: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    calm, beside, _ = cases
    return {
        "p99_ms": max(calm[kind]["ms"]["p99"] for kind in ("polls", "uploads")),
        "server_errors": sum(case["server_errors"] for case in cases),
        "growth_mb_per_minute": max(map(_megabytes, cases)),
        "dripping_p99_ratio": beside["ms"]["p99"] / calm["ms"]["p99"],
    }
