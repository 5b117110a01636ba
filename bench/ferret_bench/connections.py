"""Many and slow connections: what they cost those who only want an answer.

The API runs alone on SQLite. While others hold connections, one honest client asks ``GET /experiments`` again and
again, each time over a new connection. The document holds ``machine``, its ``load`` before and after (over 1, 5 and 15
minutes), ``bounds``, and for each of ``cases``

    streams, dripping, idle   connections of others: event streams of one experiment, to which something happens twice a
                              second; requests that arrive a byte a second; sockets that say nothing
    descriptors               the limit on the API's open files, null: what the system allows
    asked, answered           requests of the honest client, and how many were answered with 200
    ms                        p50, p99 and max of those that were answered
    cpu                       seconds of processor time that the API took per second
    resident_bytes, log_bytes of the API in the end

Other work on the machine makes all times longer: they are bounds from above unless it is idle.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, final

from ferret_bench._base import Document, Say, Table
from ferret_bench._connections import crowd
from ferret_bench._connections.api import Api, get, serving
from ferret_bench.measure import bound
from ferret_bench.measure.bound import Bound, against
from ferret_bench.measure.machine import machine
from ferret_bench.measure.spread import spread
from ferret_db import descriptors

BOUNDS = {"streams_p99_ms": Bound("<=", 250), "few_descriptors_answered": Bound(">=", 1)}


class Case(NamedTuple):
    """Who else is there."""

    streams: int = 0
    dripping: int = 0
    idle: int = 0
    descriptors: int | None = None


MOST_STREAMS, FEW_DESCRIPTORS = Case(streams=1000), Case(idle=330, descriptors=300)
FULL = [Case(), Case(streams=50), Case(streams=300), MOST_STREAMS, Case(dripping=1000), FEW_DESCRIPTORS]
QUICK = [Case(), Case(streams=5), Case(dripping=5), Case(idle=330, descriptors=300)]
REQUESTS, QUICK_REQUESTS = 400, 20


@final
class Benchmark:
    """``ferret bench connections``"""

    def run(self, say: Say, *, bounds: bool = False, quick: bool = False, max_seconds: float = 600.0) -> Document:
        begin, load = perf_counter(), os.getloadavg()
        descriptors.raise_limit()  # of this process, which holds the other ends
        cases = QUICK if quick else [MOST_STREAMS, FEW_DESCRIPTORS] if bounds else FULL
        found = list[dict[str, Any]]()
        with tempfile.TemporaryDirectory(prefix="ferret-bench-") as folder:
            for number, case in enumerate(cases):
                say(f"{case}")
                left = (max_seconds - (perf_counter() - begin)) / (len(cases) - number)
                found.append(_measured(case, Path(folder) / str(number), QUICK_REQUESTS if quick else REQUESTS, left))
        return {
            "benchmark": "connections",
            "asked": {"bounds": bounds, "quick": quick, "max_seconds": max_seconds},
            "machine": machine(),
            "load": {"before": load, "after": os.getloadavg()},
            "cases": found,
            "bounds": against(BOUNDS, _bounded(found)),
            "seconds": perf_counter() - begin,
        }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        columns = [*Case._fields, "asked", "answered", "p50", "p99", "max"]
        rows = [
            [*(case[name] for name in columns[:6]), *(f"{case['ms'][rank]:.1f}" for rank in columns[6:])]
            for case in document["cases"]
        ]
        return [Table("ms until an honest request is answered", columns, rows), bound.table(document)]


def _measured(case: Case, home: Path, requests: int, max_seconds: float) -> dict[str, Any]:
    with ExitStack() as held:
        api = held.enter_context(serving(home, case.descriptors))
        held.enter_context(crowd.following(api, case.streams))
        held.enter_context(crowd.dripping(api.port, case.dripping))
        held.enter_context(crowd.idle(api, case.idle))
        begin, used = perf_counter(), _cpu_seconds(api.pid)
        asked, times = _ask(api, requests, max_seconds)
        return {
            **case._asdict(),
            "asked": asked,
            "answered": len(times),
            "ms": spread([1000 * seconds for seconds in times] or [1000 * max_seconds]),
            "cpu": (_cpu_seconds(api.pid) - used) / (perf_counter() - begin),
            "resident_bytes": int(Path(f"/proc/{api.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
            "log_bytes": api.log.stat().st_size,
        }


def _cpu_seconds(pid: int) -> float:
    """Of user and system, proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _ask(api: Api, requests: int, max_seconds: float) -> tuple[int, list[float]]:
    """How many requests there was time for, and the seconds of those that were answered."""
    times, end = list[float](), perf_counter() + max_seconds
    for number in range(requests):
        begin = perf_counter()
        if begin > end:
            return number, times
        try:
            answered = get(api.port) == 200
        except OSError:
            answered = False
        if answered:
            times.append(perf_counter() - begin)
    return requests, times


def _bounded(found: list[dict[str, Any]]) -> dict[str, float | None]:
    streams = max((case for case in found if case["streams"]), key=lambda case: case["streams"])
    few = next(case for case in found if case["descriptors"])
    return {"streams_p99_ms": streams["ms"]["p99"], "few_descriptors_answered": few["answered"] / few["asked"]}
