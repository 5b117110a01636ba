"""The dashboard in a real Chromium: bytes loaded, time to the first curve, drawing speed, memory.

The API runs alone on SQLite. The document holds ``machine``, its ``load`` before and after, ``bounds``, and

    javascript     scripts of the built dashboard: ``files``, ``bytes``, ``gzip_bytes``, ``first_load_gzip_bytes`` of
                   the ones that an experiment's page loads, and the share ``compressed`` when they are served
    first_curve    seconds from opening an experiment of 200 rounds to its first curve, nothing cached: p50, p99, max
    lines_ms       of a redraw of 4 series of 25,000 points after one more was added: p50, p99, max
    heat_map_ms    of a redraw of 1,000 participants × 200 rounds in which all cells change: p50, p99, max
    memory         by tab, bytes of the JavaScript heap after collecting garbage at ``start``, ``half`` and ``end`` of
                   ``seconds`` with 5,000 events a minute, and how many ``events`` there were

Other work on the machine makes all times longer: they are bounds from above unless it is idle.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, final

from ferret_bench import base
from ferret_bench._api.service import alone
from ferret_bench.base import Asked, Document, Say, Table, shown
from ferret_bench.measure import bound
from ferret_bench.measure.bound import Bound, against
from ferret_bench.measure.statistics import spread
from ferret_cli.requirements_check import require_modules

BOUNDS = {
    "javascript_gzip_bytes": Bound("<=", 200_000),
    "first_load_gzip_bytes": Bound("<=", 200_000),
    "javascript_compressed": Bound(">=", 1),
    "first_curve_seconds": Bound("<=", 1),
    "lines_redraw_ms": Bound("<=", 30),
    "heat_map_redraw_ms": Bound("<=", 16),
    "heap_growth": Bound("<=", 1.1),
}
"""Medians; ``heap_growth`` is the largest heap in the end over that at half of the time."""
TABS = ("overview", "events")


class Sizes(NamedTuple):
    visits: int = 10
    rounds: int = 200
    redraws: int = 30
    lines: tuple[int, int] = (4, 25_000)
    cells: tuple[int, int] = (1000, 200)
    flood_seconds: float = 600


QUICK = Sizes(visits=2, rounds=20, redraws=3, lines=(4, 2000), cells=(100, 20), flood_seconds=4)


@final
class Benchmark(base.Benchmark):
    """``ferret bench web``"""

    def measure(self, say: Say, asked: Asked) -> Document:
        require_modules(["playwright"], "pip install playwright")

        from ferret_bench import _web

        begin, load, sizes = perf_counter(), os.getloadavg(), QUICK if asked.quick else Sizes()
        with (
            tempfile.TemporaryDirectory(prefix="ferret-bench-") as folder,
            alone(Path(folder) / "home") as api,
            _web.started() as chromium,
        ):
            _web.measured_rounds(api, sizes.rounds)
            say("javascript")
            javascript = _web.javascript_sizes(api.port, _web.scripts_loaded(chromium, api))
            say("first curve")
            curves = [_web.first_curve_seconds(chromium, api) for _ in range(sizes.visits)]
            say("redraws")
            lines = _web.redraw_milliseconds(chromium, "lines", sizes.lines, sizes.redraws)
            cells = _web.redraw_milliseconds(chromium, "cells", sizes.cells, sizes.redraws)
            left = (asked.max_seconds - (perf_counter() - begin)) / len(TABS)
            seconds = max(1.0, min(sizes.flood_seconds, left))
            memory = list[dict[str, Any]]()
            for tab in TABS:
                say(f"{_web.EVENTS_PER_MINUTE} events a minute for {seconds:.0f} s, tab {tab}")
                memory.append(_web.heaps(chromium, api, tab, seconds) | {"seconds": seconds})
        document: Document = {
            "load": {"before": load, "after": os.getloadavg()},
            "javascript": javascript,
            "first_curve": spread(curves),
            "lines_ms": spread(lines),
            "heat_map_ms": spread(cells),
            "memory": memory,
        }
        return document | {"bounds": against(BOUNDS, _bounded(document))}

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        columns = ["p50", "p99", "max"]
        times = [
            [name, *(shown(document[name][column]) for column in columns)]
            for name in ("first_curve", "lines_ms", "heat_map_ms")
        ]
        kept = ["tab", "seconds", "events", "start", "half", "end"]
        memory = [[shown(found[name]) for name in kept] for found in document["memory"]]
        return [
            Table("seconds and milliseconds until it is drawn", ["what", *columns], times),
            Table("bytes of JavaScript heap under 5,000 events a minute", kept, memory),
            bound.table(document),
        ]


def _bounded(document: Mapping[str, Any]) -> dict[str, float | None]:
    return {
        "javascript_gzip_bytes": document["javascript"]["gzip_bytes"],
        "first_load_gzip_bytes": document["javascript"]["first_load_gzip_bytes"],
        "javascript_compressed": document["javascript"]["compressed"],
        "first_curve_seconds": document["first_curve"]["p50"],
        "lines_redraw_ms": document["lines_ms"]["p50"],
        "heat_map_redraw_ms": document["heat_map_ms"]["p50"],
        "heap_growth": max(found["end"] / found["half"] for found in document["memory"]),
    }
