"""Tasks that have begun and not yet ended well: how often, and in whose hands they are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, select, update
from sqlalchemy.orm import Session

from ferret_core.protocol.task_names import TaskName
from ferret_db import clock
from ferret_db.repositories._upsert import insert
from ferret_db.repositories.workers import GONE_SECONDS
from ferret_db.tables import TaskRun, Worker

_UNSYNCHRONISED = {"synchronize_session": False}


def get(s: Session, task: TaskName, argument: str, *, lock: bool = False) -> TaskRun | None:
    """The run as the database has it now, on request ours until the transaction ends; None if there is none."""
    return s.get(TaskRun, (task, argument), populate_existing=True, with_for_update=lock)


def add(s: Session, task: TaskName, argument: str, experiment_id: str, worker: str) -> bool:
    """Notes a first attempt in the hands of ``worker``; False if another was faster."""
    row = insert(s, TaskRun).values(
        task=task,
        argument=argument,
        experiment_id=experiment_id,
        attempts=1,
        worker=worker,
        called_again=False,
        created_at=clock.utcnow(),
        updated_at=clock.utcnow(),
    )
    added = s.execute(row.on_conflict_do_nothing().returning(TaskRun.argument))
    return added.one_or_none() is not None


def take(s: Session, run: TaskRun, worker: str) -> bool:
    """Counts one more attempt, in the hands of ``worker``; False if the run is no longer as it was read."""
    as_read = TaskRun.attempts == run.attempts, TaskRun.worker.is_not_distinct_from(run.worker)
    return _change(s, run, *as_read, attempts=run.attempts + 1, worker=worker)


def let_go(s: Session, run: TaskRun) -> bool:
    """Takes the run out of the hands it was read in; False if they are others now."""
    return _change(s, run, TaskRun.worker.is_not_distinct_from(run.worker), worker=None)


def change(s: Session, run: TaskRun, **values: Any) -> None:
    """Sets columns of the run."""
    _change(s, run, **values)


def drop(s: Session, run: TaskRun) -> None:
    """Forgets the run and its attempts."""
    s.execute(delete(TaskRun).where(*_is(run)), execution_options=_UNSYNCHRONISED)


def held(s: Session, task: TaskName, argument: str, seconds: float = GONE_SECONDS) -> TaskRun | None:
    """The task's run while a worker is on it that was seen in the last ``seconds``."""
    query = select(TaskRun).where(TaskRun.task == task, TaskRun.argument == argument, _in_hand(s, seconds))
    return s.scalars(query, execution_options={"populate_existing": True}).one_or_none()


def in_hand(s: Session, task: TaskName, argument: ColumnElement[str], seconds: float) -> ColumnElement[bool]:
    """The same as a condition, for an ``argument`` that is another table's column."""
    return exists().where(TaskRun.task == task, TaskRun.argument == argument, _in_hand(s, seconds))


def orphaned(s: Session, seconds: float = GONE_SECONDS) -> Sequence[TaskRun]:
    """The runs whose worker is gone, has not been seen for ``seconds``, or has turned to something else."""
    query = select(TaskRun).where(TaskRun.dead_at.is_(None), TaskRun.worker.is_not(None), ~_in_hand(s, seconds))
    return s.scalars(query.order_by(TaskRun.created_at, TaskRun.argument)).all()


def strikes(s: Session, experiment_id: str, codes: Collection[str]) -> int:
    """How often a task of the experiment was tried that failed for one of these reasons the last time."""
    query = select(TaskRun).where(TaskRun.experiment_id == experiment_id, TaskRun.error.is_not(None))
    return sum(run.attempts for run in s.scalars(query) if run.error is not None and run.error["code"] in codes)


def failing(s: Session, experiment_id: str) -> Sequence[TaskRun]:
    """The experiment's tasks that failed and are to be tried again, the longest failing first."""
    query = select(TaskRun).where(
        TaskRun.experiment_id == experiment_id, TaskRun.error.is_not(None), TaskRun.dead_at.is_(None)
    )
    return s.scalars(query.order_by(TaskRun.created_at, TaskRun.argument)).all()


def _change(s: Session, run: TaskRun, *criteria: ColumnElement[bool], **values: Any) -> bool:
    changed = s.execute(
        update(TaskRun)
        .where(*_is(run), *criteria)
        .values(updated_at=clock.utcnow(), **values)
        .returning(TaskRun.argument),
        execution_options=_UNSYNCHRONISED,
    )
    return changed.one_or_none() is not None


def _is(run: TaskRun) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return TaskRun.task == run.task, TaskRun.argument == run.argument


def _in_hand(s: Session, seconds: float) -> ColumnElement[bool]:
    """Its worker is alive and says that it works on this."""
    return exists().where(
        Worker.id == TaskRun.worker,
        Worker.task == TaskRun.task,
        Worker.subject == TaskRun.argument,
        Worker.seen_at > clock.now(s) - timedelta(seconds=seconds),
    )
