"""Workers that say every few seconds that they are alive, and what they work on."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, delete, exists, func, select
from sqlalchemy.orm import Session

from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db import clock
from ferret_db.repositories._upsert import insert
from ferret_db.tables import TaskRun, Worker

HEARTBEAT_SECONDS = 5.0
GONE_SECONDS = 3 * HEARTBEAT_SECONDS
"""A worker that has not been seen for this long is considered dead."""


def gone_after(lease_seconds: float) -> float:
    """The same where leases are short: half of one for a silent worker leaves time to redo its work within two."""
    return min(GONE_SECONDS, lease_seconds / 2)


class Identity(NamedTuple):
    """A worker process: its id, unlike that of any other, and where it runs."""

    id: str
    queue: Queue
    host: str
    pid: int
    device: str


def seen(
    s: Session,
    who: Identity,
    task: TaskName | None = None,
    subject: str | None = None,
    message_sent_at: datetime | None = None,
) -> None:
    """Notes that the worker is alive, and the task it works on with the id that this is about; None when idle.

    ``message_sent_at``: when the message was sent that it has just taken.
    """
    row = insert(s, Worker).values(
        **who._asdict(),
        task=task,
        subject=subject,
        message_sent_at=message_sent_at,
        started_at=clock.utcnow(),
        seen_at=clock.utcnow(),
    )
    news = {name: getattr(row.excluded, name) for name in ("task", "subject", "seen_at")}
    if message_sent_at is not None:
        news["message_sent_at"] = row.excluded.message_sent_at
    s.execute(row.on_conflict_do_update(index_elements=[Worker.id], set_=news))


def leave(s: Session, worker_id: str) -> None:
    """Takes out a worker that has ended in an orderly way."""
    s.execute(delete(Worker).where(Worker.id == worker_id), execution_options={"synchronize_session": False})


def forgettable(s: Session, seconds: float) -> bool:
    """Whether there are workers that were last seen more than ``seconds`` ago."""
    return bool(s.scalar(select(exists().where(~_within(s, seconds)))))


def forget(s: Session, seconds: float) -> None:
    """Deletes the workers that were last seen more than ``seconds`` ago."""
    s.execute(delete(Worker).where(~_within(s, seconds)), execution_options={"synchronize_session": False})


def alive(s: Session, queue: Queue, seconds: float = GONE_SECONDS) -> int:
    """How many workers of ``queue`` were seen in the last ``seconds``."""
    return counts(s, seconds)[queue]


def idle(s: Session, queue: Queue, seconds: float = GONE_SECONDS) -> bool:
    """Whether a worker of ``queue`` is alive and has nothing in hand."""
    return bool(s.scalar(select(exists().where(Worker.queue == queue, Worker.task.is_(None), _within(s, seconds)))))


def counts(s: Session, seconds: float = GONE_SECONDS) -> dict[Queue, int]:
    """How many workers of each queue were seen in the last ``seconds``, every queue named."""
    query = select(Worker.queue, func.count()).where(_within(s, seconds)).group_by(Worker.queue)
    return dict.fromkeys(Queue, 0) | dict(s.execute(query).all())


def known(s: Session) -> list[tuple[Worker, str | None]]:
    """Every worker that is not forgotten, with the experiment it works for, by queue, host and process."""
    same = and_(TaskRun.task == Worker.task, TaskRun.argument == Worker.subject)
    query = select(Worker, TaskRun.experiment_id).outerjoin(TaskRun, same)
    found = s.execute(query.order_by(Worker.queue, Worker.host, Worker.pid))
    return [(worker, experiment_id) for worker, experiment_id in found]


def busy(s: Session, seconds: float = GONE_SECONDS) -> dict[Queue, int]:
    """How many of them have a task in hand, every queue named."""
    query = select(Worker.queue, func.count()).where(_within(s, seconds), Worker.task.is_not(None))
    return dict.fromkeys(Queue, 0) | dict(s.execute(query.group_by(Worker.queue)).all())


def last_seen(s: Session, queue: Queue) -> datetime | None:
    """When the last sign of life came from ``queue``; None if all that ever was is forgotten."""
    return s.scalars(select(func.max(Worker.seen_at)).where(Worker.queue == queue)).one()


def _within(s: Session, seconds: float) -> ColumnElement[bool]:
    return Worker.seen_at > clock.now(s) - timedelta(seconds=seconds)
