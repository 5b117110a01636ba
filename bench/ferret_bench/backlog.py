"""The control plane under a backlog: many queued experiments, and one round of very many participants. On SQLite.

The document holds ``machine``, ``queued``, ``opening`` and ``bounds``.

    queued   for each lease period, ``ferret serve`` with few and with many queued experiments: ``per_minute`` of those
             that completed, ``submit_p99_ms`` of the submissions, ``longest_queue`` in both queues of the broker per
             experiment that runs, and ``throughput_ratio`` of many to few
    opening  one round of ``participants``: ``longest_lock_ms``, the longest time for which a transaction held the write
             lock, and ``seconds`` in all

Other work on the machine makes all times longer.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, final

import redis
from sqlalchemy import Connection, Engine, event, select

from ferret_bench._base import Document, Say, Table
from ferret_bench._control import wide
from ferret_bench._control.stack import Stack, serving
from ferret_bench._control.workload import Workload
from ferret_bench.measure import bound
from ferret_bench.measure.bound import Bound, against
from ferret_bench.measure.machine import machine
from ferret_bench.measure.sampled import sampled
from ferret_cli.stack import broker
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.task_names import Queue
from ferret_db import migrate
from ferret_db.database import Database
from ferret_db.repositories import experiments
from ferret_db.settings import ServiceSettings
from ferret_db.tables import Experiment
from ferret_worker import coordinate

BOUNDS = {
    "throughput_ratio": Bound(">=", 0.9),
    "submit_p99_ms": Bound("<=", 500),
    "longest_queue": Bound("<=", 2),
    "longest_lock_ms": Bound("<=", 250),
}
LOOK_SECONDS = 0.1
BATCHES = 10
"""Throughput is measured over this many batches: a single one lasts a few seconds, and varies too much."""
CLIENTS = 2
PLACES: int = ServiceSettings.model_fields["running_experiments"].default


class Size(NamedTuple):
    """How much is measured."""

    few: int
    many: int
    leases: tuple[float, ...]
    participants: int


FULL = Size(few=10, many=1000, leases=(60.0, 20.0), participants=100_000)
QUICK = Size(few=1, many=3, leases=(20.0,), participants=1200)


@final
class Benchmark:
    """``ferret bench backlog``"""

    def run(self, say: Say, *, bounds: bool = False, quick: bool = False, max_seconds: float = 600.0) -> Document:
        size = QUICK if quick else FULL
        with tempfile.TemporaryDirectory(prefix="ferret-bench-") as folder:
            say(f"one round of {size.participants} participants")
            opening = _opening(Path(folder), size.participants)
            queued = [_queued(Path(folder) / f"{lease:.0f}", size, lease, max_seconds, say) for lease in size.leases]
        worst = {
            "throughput_ratio": min(found["throughput_ratio"] for found in queued),
            "submit_p99_ms": max(found["many"]["submit_p99_ms"] for found in queued),
            "longest_queue": max(found["many"]["longest_queue"] for found in queued),
            "longest_lock_ms": opening["longest_lock_ms"],
        }
        return {
            "benchmark": "backlog",
            "asked": {"bounds": bounds, "quick": quick, "max_seconds": max_seconds},
            "machine": machine(),
            "load": os.getloadavg(),
            "queued": queued,
            "opening": opening,
            "bounds": against(BOUNDS, worst),
        }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        columns = ["lease", "queued", "per minute", "submit p99 ms", "longest queue per experiment"]
        rows = [
            [
                f"{found['lease_seconds']:.0f} s",
                part["queued"],
                f"{part['per_minute']:.1f}",
                f"{part['submit_p99_ms']:.0f}",
                f"{part['longest_queue']:.1f}",
            ]
            for found in document["queued"]
            for part in (found["few"], found["many"])
        ]
        opening = document["opening"]
        wide = [[opening["participants"], f"{opening['longest_lock_ms']:.0f}", f"{opening['seconds']:.1f}"]]
        return [
            Table("queued experiments", columns, rows),
            Table("a wide round", ["participants", "longest lock ms", "seconds"], wide),
            bound.table(document),
        ]


def _queued(folder: Path, size: Size, lease_seconds: float, max_seconds: float, say: Say) -> dict[str, Any]:
    found: dict[str, Any] = {"lease_seconds": lease_seconds}
    for name, number in (("few", size.few), ("many", size.many)):
        say(f"{number} queued experiments at a lease of {lease_seconds:.0f} s")
        found[name] = _served(folder / name, number, size.few, lease_seconds, max_seconds)
    return found | {"throughput_ratio": found["many"]["per_minute"] / found["few"]["per_minute"]}


def _served(folder: Path, number: int, counted: int, lease_seconds: float, max_seconds: float) -> dict[str, Any]:
    """All but ``counted`` of ``number`` are submitted, and then as many at a time, each time until as many are done."""
    workload, carrier = Workload(folder / "workload", CLIENTS), broker.prepare(folder / "broker")
    carrier.child.start()
    url = f"sqlite:///{folder}/ferret.db"
    settings = {"FERRET_BROKER_URL": carrier.url, "FERRET_LEASE_SECONDS": str(lease_seconds)}
    try:
        with serving(folder / "home", url, settings) as stack, _longest_queue(carrier.url) as longest:
            database, spec = Database(url), workload.spec(1)
            stack.service.submit(spec).wait(timeout=max_seconds)  # what is imported and loaded once
            submitted = _submitted(stack, spec, number - counted)
            begin, done = time.monotonic(), _completed(database)
            for batch in range(1, BATCHES + 1):
                submitted += _submitted(stack, spec, counted)
                while _completed(database) < done + batch * counted and time.monotonic() < begin + max_seconds:
                    time.sleep(LOOK_SECONDS)
            finished, seconds = _completed(database) - done, time.monotonic() - begin
            database.dispose()
    finally:
        carrier.child.kill()
    ordered = sorted(submitted)
    return {
        "queued": number,
        "per_minute": 60 * finished / seconds,
        "submit_p99_ms": 1000 * ordered[-(-99 * len(ordered) // 100) - 1],
        "longest_queue": max(longest, default=0) / min(number, PLACES),
    }


def _submitted(stack: Stack, spec: ExperimentSpec, number: int) -> list[float]:
    """Seconds that each of the submissions took."""
    seconds = list[float]()
    for _ in range(number):
        begin = time.perf_counter()
        stack.service.submit(spec)
        seconds.append(time.perf_counter() - begin)
    return seconds


def _completed(database: Database) -> int:
    with database.read() as s:
        return experiments.count_by_state(s).get(ExperimentState.COMPLETED, 0)


@contextmanager
def _longest_queue(url: str) -> Generator[list[int]]:
    """Lengths of both queues together, looked at all the time."""
    with (
        redis.Redis.from_url(url) as client,
        sampled(lambda: sum(client.llen(str(queue)) for queue in Queue), LOOK_SECONDS) as lengths,
    ):
        yield lengths


def _opening(folder: Path, participants: int) -> dict[str, Any]:
    migrate.upgrade(url := f"sqlite:///{folder}/wide.db")
    database = Database(url)
    experiment = wide.started(database, participants)
    begin = time.perf_counter()
    with _locks() as held:
        with database.begin() as s:
            coordinate.advance(s, experiment.id)
        coordinate.open_announced(database, experiment.id)
    seconds = time.perf_counter() - begin
    with database.read() as s:
        assert s.scalars(select(Experiment.state)).one() == ExperimentState.RUNNING
    database.dispose()
    return {"participants": participants, "longest_lock_ms": 1000 * max(held), "seconds": seconds}


@contextmanager
def _locks() -> Generator[Sequence[float]]:
    """Seconds for which each writing transaction of the block had begun before it was committed."""
    begun, held = dict[int, float](), list[float]()

    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("ferret_begin") != "BEGIN":
            begun[id(connection)] = time.perf_counter()

    def commit(connection: Connection) -> None:
        if id(connection) in begun:
            held.append(time.perf_counter() - begun.pop(id(connection)))

    event.listen(Engine, "begin", begin)
    event.listen(Engine, "commit", commit)
    try:
        yield held
    finally:
        event.remove(Engine, "begin", begin)
        event.remove(Engine, "commit", commit)
