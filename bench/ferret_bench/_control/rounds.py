"""The service's overhead in a round: from the last report to the opening of the next round, without the mathematics."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import linear_regression
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from ferret_bench._control import databases
from ferret_bench._control.stack import Stack, serving
from ferret_bench._control.workload import Workload
from ferret_bench.base import Say
from ferret_bench.measure.statistics import spread
from ferret_core.protocol.errors import FerretError
from ferret_db.database import Database
from ferret_db.repositories import experiments
from ferret_db.tables import Base, Event, Metric
from ferret_sdk.service.run import Run

WARM_UP = 5
"""First rounds, which do not count: the workers import and load modules and models."""
LOOK_SECONDS = 0.1


class Sample(NamedTuple):
    """State after ``round`` rounds: rows of all tables, and bytes of memory by process."""

    round: int
    rows: int
    memory: dict[str, int]


def measure(name: str, folder: Path, clients: int, rounds: int, max_seconds: float, say: Say) -> dict[str, Any]:
    """Runs one experiment of ``rounds`` rounds by all ``clients`` in ``ferret serve`` on the database ``name``.

    Raises the experiment's error.
    """
    spec = Workload(folder / "workload", clients).spec(rounds)
    with databases.empty(name, folder) as url, serving(folder / "home", url) as stack:
        database = Database(url)
        run = stack.service.submit(spec)
        samples = _follow(run, database, stack, max_seconds, say)
        with database.read() as s:
            times, database_bytes = _times(s, run.id), databases.bytes_of(s)
        database.dispose()
    counted = times[WARM_UP:] or times
    return {
        "clients": clients,
        "rounds": rounds,
        "counted": len(counted),
        **{f"{part}_ms": spread([1000 * parts[part] for parts in counted]) for part in counted[0]},
        "growth": _growth(samples, rounds),
        "database_bytes": database_bytes,
    }


def _follow(run: Run, database: Database, stack: Stack, max_seconds: float, say: Say) -> list[Sample]:
    """Samples until the experiment is over; ``experiment.timeout`` after ``max_seconds``."""
    samples: list[Sample] = []
    deadline = time.monotonic() + max_seconds
    while True:
        with database.read() as s:
            experiment = experiments.get(s, run.id)
            samples.append(Sample(experiment.round, _rows(s), stack.resident_bytes()))
        if experiment.state.finished:
            break
        if time.monotonic() > deadline:
            run.cancel()
            detail = f"round {experiment.round} of {experiment.rounds} after {max_seconds:.0f} s: raise --max-seconds"
            raise FerretError("experiment.timeout", detail)
        time.sleep(LOOK_SECONDS)
    run.refresh().require_completed()
    say(f"{experiment.rounds} rounds done")
    return samples


def _times(s: Session, experiment_id: str) -> list[dict[str, float]]:
    """Returns, for every round except the last, seconds of ``control``, of its parts, and of ``mathematics``."""
    wanted = ("contribution.accepted", "round.committed", "round.opened")
    rows = s.scalars(
        select(Event).where(Event.experiment_id == experiment_id, Event.type.in_(wanted)).order_by(Event.seq)
    )
    at: dict[tuple[str, int | None], datetime] = {(row.type, row.round): row.created_at for row in rows}
    folding = select(Metric).where(Metric.experiment_id == experiment_id, Metric.name == "aggregate_seconds")
    mathematics = {row.round: row.value for row in s.scalars(folding)}
    return [
        _parts(
            at["contribution.accepted", number],
            at["round.committed", number],
            at["round.opened", following],
            mathematics[number],
        )
        for number, following in pairwise(sorted(mathematics))
    ]


def _parts(reported: datetime, committed: datetime, opened: datetime, mathematics: float) -> dict[str, float]:
    to_commit = (committed - reported).total_seconds() - mathematics
    to_open = (opened - committed).total_seconds()
    return {"control": to_commit + to_open, "commit": to_commit, "open": to_open, "mathematics": mathematics}


def _rows(s: Session) -> int:
    counts = [select(func.count()).select_from(table).scalar_subquery() for table in Base.metadata.sorted_tables]
    return sum(s.execute(select(*counts)).one())


def _growth(samples: Sequence[Sample], rounds: int) -> dict[str, Any]:
    """Returns rows and bytes that a round adds, in the first and second half of the rounds after the warm-up."""
    middle = (WARM_UP + rounds) / 2
    halves = [
        [sample for sample in samples if WARM_UP <= sample.round <= middle],
        [sample for sample in samples if sample.round >= middle],
    ]
    return {
        "rows_per_round": [_slope(half, [sample.rows for sample in half]) for half in halves],
        "bytes_per_round": {
            name: [_slope(half, [sample.memory.get(name, 0) for sample in half]) for half in halves]
            for name in samples[-1].memory
        },
    }


def _slope(samples: Sequence[Sample], values: Sequence[int]) -> float | None:
    """Returns the slope, or None if there are too few rounds."""
    numbers = [sample.round for sample in samples]
    return linear_regression(numbers, values).slope if len(set(numbers)) > 1 else None
