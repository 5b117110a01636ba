"""Work that waits for workers, for operators: a few read-only queries over indices."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from ferret_core.protocol.states import ExperimentState, RoundState
from ferret_core.protocol.task_names import Queue
from ferret_db.repositories import outbox
from ferret_db.tables import Assignment, Experiment, OutboxMessage, Round, TaskRun


class Backlog(NamedTuple):
    """The number of waiting calls, and the time since when the oldest waits (None without calls)."""

    waiting: int
    oldest: datetime | None


NOTHING = Backlog(0, None)


def backlogs(s: Session) -> dict[Queue, Backlog]:
    """Returns the backlog of every queue, without calls that a worker has taken.

    Experiments that wait for their turn to start do not count. Nor does the playground's queue: no table holds its
    questions.
    """
    found = dict.fromkeys(Queue, NOTHING) | _called(s)
    return found | {Queue.TRAIN: _sum(found[Queue.TRAIN], _trainings(s))}


def unsent(s: Session) -> Backlog:
    """Counts calls that were not handed to the broker yet."""
    calls = func.count(), func.min(OutboxMessage.created_at)
    query = (
        select(*calls).select_from(OutboxMessage).outerjoin(Experiment, Experiment.id == OutboxMessage.experiment_id)
    )
    waiting = OutboxMessage.sent_at.is_(None), OutboxMessage.received_at.is_(None)
    return Backlog(*s.execute(query.where(*waiting, outbox.startable())).one())


def given_up(s: Session) -> int:
    """Counts tasks that failed or killed their worker too often and are not retried."""
    return s.scalars(select(func.count()).select_from(TaskRun).where(TaskRun.given_up_at.is_not(None))).one()


def _called(s: Session) -> dict[Queue, Backlog]:
    columns = OutboxMessage.queue, func.count(), func.min(OutboxMessage.created_at)
    query = select(*columns).outerjoin(Experiment, Experiment.id == OutboxMessage.experiment_id)
    waiting = query.where(OutboxMessage.received_at.is_(None), outbox.startable()).group_by(OutboxMessage.queue)
    return {queue: Backlog(count, oldest) for queue, count, oldest in s.execute(waiting)}


def _trainings(s: Session) -> Backlog:
    query = (
        select(func.count(), func.min(Assignment.updated_at))
        .select_from(Assignment)
        .join(Round, Round.id == Assignment.round_id)
        .join(Experiment, Experiment.id == Round.experiment_id)
        .where(Round.state == RoundState.OPEN, Experiment.state == ExperimentState.RUNNING, *outbox.uncalled())
    )
    return Backlog(*s.execute(query).one())


def _sum(one: Backlog, other: Backlog) -> Backlog:
    oldest = [since for since in (one.oldest, other.oldest) if since is not None]
    return Backlog(one.waiting + other.waiting, min(oldest, default=None))
