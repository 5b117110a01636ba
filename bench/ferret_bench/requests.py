"""Hostile requests of strangers: what each costs the service, and what a flood costs those who are known.

The API runs alone on SQLite. The document holds ``machine``, its ``load`` before and after (over 1, 5 and 15 minutes),
``bounds``, and

    keys      a POST to ``/session`` with 80,000 unknown keys, once as they are and once as many as its limit on bodies
              lets through: ``keys``, ``status``, ``bytes`` of the answer, ``ms`` until it was complete (p50, p99, max)
    floods    while strangers ask for ``path`` over ``connections`` as fast as they are answered: ``answers`` by status
              and ``per_second``, and ``ms`` (p50, p99, max) until the administrator's ``GET /experiments`` was answered

Other work on the machine makes all times longer: they are bounds from above unless it is idle.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter
from typing import Any, final

from ferret_bench._base import Document, Say, Table
from ferret_bench._connections.api import Api, get, serving
from ferret_bench.measure import bound
from ferret_bench.measure.bound import Bound, against
from ferret_bench.measure.machine import machine
from ferret_bench.measure.spread import spread

BOUNDS = {"keys_p50_ms": Bound("<=", 50), "keys_bytes": Bound("<=", 10_000)}
MANY, LET_THROUGH = 80_000, 800
CONNECTIONS = 40
REPEATS, QUICK_REPEATS = 30, 3
REQUESTS, QUICK_REQUESTS = 400, 10
FLOODS = (None, "/readyz", "/healthz")


@final
class Benchmark:
    """``ferret bench requests``"""

    def run(self, say: Say, *, bounds: bool = False, quick: bool = False, max_seconds: float = 600.0) -> Document:
        begin, load = perf_counter(), os.getloadavg()
        floods = FLOODS[:1] if bounds else FLOODS
        with tempfile.TemporaryDirectory(prefix="ferret-bench-") as folder, serving(Path(folder) / "home", None) as api:
            say(f"{MANY} unknown keys")
            keys = [_keys(api, count, QUICK_REPEATS if quick else REPEATS) for count in (MANY, LET_THROUGH)]
            found = list[dict[str, Any]]()
            for number, path in enumerate(floods):
                say(f"a flood on {path}" if path else "no flood")
                left = (max_seconds - (perf_counter() - begin)) / (len(floods) - number)
                found.append(_flood(api, path, QUICK_REQUESTS if quick else REQUESTS, left))
        return {
            "benchmark": "requests",
            "asked": {"bounds": bounds, "quick": quick, "max_seconds": max_seconds},
            "machine": machine(),
            "load": {"before": load, "after": os.getloadavg()},
            "keys": keys,
            "floods": found,
            "bounds": against(BOUNDS, _bounded(keys)),
            "seconds": perf_counter() - begin,
        }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        ranks = ("p50", "p99", "max")
        keys = [
            [case["keys"], case["status"], case["bytes"], *(f"{case['ms'][rank]:.1f}" for rank in ranks)]
            for case in document["keys"]
        ]
        floods = [
            [case["path"], case["connections"], f"{case['per_second']:.0f}", json.dumps(case["answers"])]
            + [f"{case['ms'][rank]:.1f}" for rank in ranks]
            for case in document["floods"]
        ]
        return [
            Table("ms for a stranger's request with unknown keys", ["keys", "status", "bytes", *ranks], keys),
            Table(
                "ms until an honest request is answered beside a flood",
                ["flood", "connections", "per second", "answers", *ranks],
                floods,
            ),
            bound.table(document),
        ]


def _keys(api: Api, count: int, repeats: int) -> dict[str, Any]:
    body = json.dumps({f"{n}": 0 for n in range(count)}, separators=(",", ":")).encode()
    times, status, size = list[float](), 0, 0
    for _ in range(repeats):
        begin = perf_counter()
        connection = HTTPConnection("127.0.0.1", api.port, timeout=60)
        try:
            connection.request("POST", "/api/v1/session", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            status, size = response.status, len(response.read())
        finally:
            connection.close()
        times.append(1000 * (perf_counter() - begin))
    return {"keys": count, "status": status, "bytes": size, "ms": spread(times)}


def _flood(api: Api, path: str | None, requests: int, max_seconds: float) -> dict[str, Any]:
    if path is None:
        return {
            "path": None,
            "connections": 0,
            "answers": {},
            "per_second": 0.0,
            "ms": _asked(api, requests, max_seconds),
        }
    command = [sys.executable, "-m", "ferret_bench._requests.flood", str(api.port), path, str(CONNECTIONS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as flood:
        times = _asked(api, requests, max_seconds)
        said = json.loads(flood.communicate("")[0])
    answers: dict[str, int] = said["answers"]
    return {
        "path": path,
        "connections": CONNECTIONS,
        "answers": answers,
        "per_second": sum(answers.values()) / said["seconds"],
        "ms": times,
    }


def _asked(api: Api, requests: int, max_seconds: float) -> dict[str, float]:
    times, end = list[float](), perf_counter() + max_seconds
    for _ in range(requests):
        begin = perf_counter()
        if times and begin > end:
            break
        get(api.port)
        times.append(1000 * (perf_counter() - begin))
    return spread(times)


def _bounded(keys: list[dict[str, Any]]) -> dict[str, float | None]:
    return {
        "keys_p50_ms": max(case["ms"]["p50"] for case in keys),
        "keys_bytes": max(case["bytes"] for case in keys),
    }
