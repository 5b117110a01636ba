"""Experiments made to hang a worker or to take all memory: how soon each ends, and what it costs another experiment.

In ``ferret serve`` on SQLite, with a memory limit of 2 GiB per worker. The document holds ``machine``, its ``load``
before and after, ``bounds``, ``control_seconds`` (an experiment of one round alone) and for each of ``bombs``

    seconds          from the submission to the typed error, or from the cancellation until no worker is at it
    code             the error, or the final state
    control_seconds  of the same experiment of one round, submitted directly after the bomb
    peak_bytes       the most memory that any process of the service had meanwhile

Other work on the machine makes all times longer: they are bounds from above unless it is idle.
"""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, final

from sqlalchemy import select

from ferret_bench._base import Document, Say, Table
from ferret_bench._control import databases
from ferret_bench._control.stack import Stack, serving
from ferret_bench._control.workload import Workload
from ferret_bench.measure import bound
from ferret_bench.measure.bound import Bound, against
from ferret_bench.measure.machine import machine
from ferret_bench.measure.sampled import sampled
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.task_names import TaskName
from ferret_db.database import Database
from ferret_db.tables import Worker
from ferret_sdk.service.run import Run

MEMORY = 2 * 2**30
BOUNDS = {"error_seconds": Bound("<=", 10), "cancel_seconds": Bound("<=", 2), "peak_bytes": Bound("<=", 1.25 * MEMORY)}
LOOK_SECONDS = 0.05
SETTLE_SECONDS = 5.0
CANCELLED = "step without end, cancelled"
Changes = dict[str, dict[str, Any]]


@final
class Benchmark:
    """``ferret bench bombs``"""

    def run(self, say: Say, *, bounds: bool = False, quick: bool = False, max_seconds: float = 600.0) -> Document:
        begin, load = perf_counter(), os.getloadavg()
        with tempfile.TemporaryDirectory(prefix="ferret-bench-") as name:
            alone, found = _measured(Path(name), max_seconds, say)
        errors = [bomb["seconds"] for bomb in found if bomb["bomb"] != CANCELLED]
        figures = {
            "error_seconds": max(errors),
            "cancel_seconds": next(bomb["seconds"] for bomb in found if bomb["bomb"] == CANCELLED),
            "peak_bytes": max(bomb["peak_bytes"] for bomb in found),
        }
        return {
            "benchmark": "bombs",
            "asked": {"bounds": bounds, "quick": quick, "max_seconds": max_seconds},
            "machine": machine(),
            "load": {"before": load, "after": os.getloadavg()},
            "control_seconds": alone,
            "bombs": found,
            "bounds": against(BOUNDS, figures),
            "seconds": perf_counter() - begin,
        }

    def tables(self, document: Mapping[str, Any]) -> list[Table]:
        columns = ["bomb", "code", "seconds", "control_seconds", "peak_bytes"]
        rows = [[bomb[name] for name in columns] for bomb in document["bombs"]]
        title = f"bombs; the control alone takes {document['control_seconds']:.1f} s"
        return [Table(title, columns, rows), bound.table(document)]


def _measured(folder: Path, max_seconds: float, say: Say) -> tuple[float, list[dict[str, Any]]]:
    workload = Workload(folder / "workload", 2)
    control = workload.spec(1)
    settings = {"FERRET_TASK_MEMORY_BYTES": str(MEMORY)}
    with databases.empty("sqlite", folder) as url, serving(folder / "home", url, settings) as stack:
        database = Database(url)
        stack.service.submit(control).wait(max_seconds)  # what is imported and loaded once
        alone = _seconds(lambda: stack.service.submit(control).wait(max_seconds))
        found = list[dict[str, Any]]()
        for name, changes in _bombs(folder).items():
            say(name)
            spec = _changed(control, changes)
            with sampled(lambda: _largest(stack), LOOK_SECONDS) as peak:
                code, seconds = (_cancelled if name == CANCELLED else _failed)(stack, database, spec, max_seconds)
                after = _seconds(lambda: stack.service.submit(control).wait(max_seconds).require_completed())
            found.append(
                {"bomb": name, "code": code, "seconds": seconds, "control_seconds": after, "peak_bytes": max(peak)}
            )
        database.dispose()
    return alone, found


def _bombs(folder: Path) -> dict[str, Changes]:
    """By name, what makes the control a bomb."""
    pipe, packed = folder / "pipe", folder / "bomb.jsonl.gz"
    os.mkfifo(pipe)
    with gzip.open(packed, "wb") as file:
        for _ in range(4096):
            file.write(b" " * 2**20)
    return {
        "pipe": {"dataset": {"train": str(pipe)}},
        "/dev/zero": {"dataset": {"train": "/dev/zero"}},
        "gzip, 4 GiB on one line": {"dataset": {"train": str(packed)}},
        "batch_size = 10**12": {"algorithm": {"local": {"batch_size": 10**12}}},
        "sketch of 320 GiB": {"algorithm": {"name": "fetchsgd", "columns": 2**34}},
        CANCELLED: {"algorithm": {"name": "fedavg", "local": {"batch_size": 65_536, "accumulation": 65_536}}},
    }


def _changed(spec: ExperimentSpec, changes: Changes) -> ExperimentSpec:
    document = spec.model_dump()
    for section, options in changes.items():
        document[section] = options if "name" in options else {**document[section], **options}
    return ExperimentSpec.model_validate(document)


def _failed(stack: Stack, database: Database, spec: ExperimentSpec, max_seconds: float) -> tuple[str, float]:
    begin = perf_counter()
    try:
        stack.service.submit(spec).wait(max_seconds).require_completed()
    except FerretError as error:
        return error.code, perf_counter() - begin
    return "completed", perf_counter() - begin


def _cancelled(stack: Stack, database: Database, spec: ExperimentSpec, max_seconds: float) -> tuple[str, float]:
    run: Run = stack.service.submit(spec)
    _until(lambda: _training(database), max_seconds)
    sleep(SETTLE_SECONDS)  # until it is in the middle of the step
    begin = perf_counter()
    run.cancel()
    _until(lambda: not _training(database), max_seconds)
    return str(run.refresh().state), perf_counter() - begin


def _training(database: Database) -> bool:
    with database.read() as s:
        return s.scalars(select(Worker).where(Worker.task == TaskName.TRAIN)).first() is not None


def _until(holds: Callable[[], bool], max_seconds: float) -> None:
    deadline = perf_counter() + max_seconds
    while not holds():
        if perf_counter() > deadline:
            raise FerretError("experiment.timeout", "a bomb did not end in the time given")
        sleep(LOOK_SECONDS)


def _seconds(work: Callable[[], object]) -> float:
    begin = perf_counter()
    work()
    return perf_counter() - begin


def _largest(stack: Stack) -> int:
    """The memory of the service's largest process."""
    try:
        return max(stack.resident_bytes().values(), default=0)
    except (OSError, IndexError):  # a process ended meanwhile
        return 0
