"""Runs of tasks that have begun and not yet succeeded: their attempts and workers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, exists, select, update
from sqlalchemy.orm import Session

from ferret_core.protocol.task_names import TaskName
from ferret_db import clock
from ferret_db.repositories.workers import GONE_SECONDS
from ferret_db.statements import upsert
from ferret_db.tables import TaskRun, Worker


def get(s: Session, task: TaskName, argument: str, *, lock: bool = False) -> TaskRun | None:
    """Returns the current run or None. With ``lock`` it is locked until the transaction ends."""
    return s.get(TaskRun, (task, argument), populate_existing=True, with_for_update=lock)


def add(s: Session, task: TaskName, argument: str, experiment_id: str, worker: str) -> bool:
    """Records a first attempt by ``worker``. Returns False if another was faster."""
    row = upsert(s, TaskRun).values(
        task=task,
        argument=argument,
        experiment_id=experiment_id,
        attempts=1,
        worker=worker,
        reschedule_requested=False,
        created_at=clock.utcnow(),
        updated_at=clock.utcnow(),
    )
    added = s.execute(row.on_conflict_do_nothing().returning(TaskRun.argument))
    return added.one_or_none() is not None


def take(s: Session, run: TaskRun, worker: str) -> bool:
    """Counts one more attempt, by ``worker``. Returns False if the run has changed since it was read."""
    as_read = TaskRun.attempts == run.attempts, TaskRun.worker.is_not_distinct_from(run.worker)
    return _change(s, run, *as_read, attempts=run.attempts + 1, worker=worker)


def let_go(s: Session, run: TaskRun) -> bool:
    """Releases the run. Returns False if its worker has changed since it was read."""
    return _change(s, run, TaskRun.worker.is_not_distinct_from(run.worker), worker=None)


def change(s: Session, run: TaskRun, **values: Any) -> None:
    """Updates columns of the run."""
    _change(s, run, **values)


def drop(s: Session, run: TaskRun) -> None:
    """Deletes the run with its attempts."""
    s.execute(delete(TaskRun).where(*_is(run)))


def held(s: Session, task: TaskName, argument: str, seconds: float = GONE_SECONDS) -> TaskRun | None:
    """Returns the task's run if its worker was seen in the last ``seconds``."""
    query = select(TaskRun).where(TaskRun.task == task, TaskRun.argument == argument, _in_hand(s, seconds))
    return s.scalars(query, execution_options={"populate_existing": True}).one_or_none()


def in_hand(s: Session, task: TaskName, argument: ColumnElement[str], seconds: float) -> ColumnElement[bool]:
    """Returns :func:`held` as a condition for an ``argument`` that is another table's column."""
    return exists().where(TaskRun.task == task, TaskRun.argument == argument, _in_hand(s, seconds))


def orphaned(s: Session, seconds: float = GONE_SECONDS) -> Sequence[TaskRun]:
    """Returns runs with a worker that is gone, was not seen for ``seconds``, or works on another task."""
    query = select(TaskRun).where(TaskRun.given_up_at.is_(None), TaskRun.worker.is_not(None), ~_in_hand(s, seconds))
    return s.scalars(query.order_by(TaskRun.created_at, TaskRun.argument)).all()


def strikes(s: Session, experiment_id: str, codes: Collection[str]) -> int:
    """Counts the attempts of the experiment's tasks that last failed with one of these codes."""
    query = select(TaskRun).where(TaskRun.experiment_id == experiment_id, TaskRun.error.is_not(None))
    return sum(run.attempts for run in s.scalars(query) if run.error is not None and run.error["code"] in codes)


def failing(s: Session, experiment_id: str) -> Sequence[TaskRun]:
    """Returns the experiment's failed tasks that will be retried, longest failing first."""
    query = select(TaskRun).where(
        TaskRun.experiment_id == experiment_id, TaskRun.error.is_not(None), TaskRun.given_up_at.is_(None)
    )
    return s.scalars(query.order_by(TaskRun.created_at, TaskRun.argument)).all()


def failed(task: TaskName) -> Select[str]:
    """Returns the query for the arguments of the task's runs that ended without success and were not given up."""
    return select(TaskRun.argument).where(TaskRun.task == task, TaskRun.worker.is_(None), TaskRun.given_up_at.is_(None))


def _change(s: Session, run: TaskRun, *criteria: ColumnElement[bool], **values: Any) -> bool:
    changed = s.execute(
        update(TaskRun)
        .where(*_is(run), *criteria)
        .values(updated_at=clock.utcnow(), **values)
        .returning(TaskRun.argument)
    )
    return changed.one_or_none() is not None


def _is(run: TaskRun) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return TaskRun.task == run.task, TaskRun.argument == run.argument


def _in_hand(s: Session, seconds: float) -> ColumnElement[bool]:
    """Returns the condition that the run's worker is alive and reports this task."""
    return exists().where(
        Worker.id == TaskRun.worker,
        Worker.task == TaskRun.task,
        Worker.subject == TaskRun.argument,
        Worker.seen_at > clock.now(s) - timedelta(seconds=seconds),
    )
