"""Workers' heartbeats, and their current tasks."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, delete, exists, func, select
from sqlalchemy.orm import Session

from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db import clock
from ferret_db.statements import upsert
from ferret_db.tables import TaskRun, Worker

HEARTBEAT_SECONDS = 5.0
GONE_SECONDS = 3 * HEARTBEAT_SECONDS
"""Seconds without a heartbeat after which a worker is considered dead."""


def gone_after(lease_seconds: float) -> float:
    """Returns the limit for these leases: at most half of one, so that lost work can be redone within two leases."""
    return min(GONE_SECONDS, lease_seconds / 2)


class WorkerIdentity(NamedTuple):
    """A worker process: its unique id, where it runs, and if its device is quick at bf16."""

    id: str
    queue: Queue
    host: str
    pid: int
    device: str
    bfloat16: bool = False


def seen(
    s: Session,
    who: WorkerIdentity,
    task: TaskName | None = None,
    subject: str | None = None,
    message_sent_at: datetime | None = None,
) -> None:
    """Records that the worker is alive, and its task with the id of its subject; None when idle.

    ``message_sent_at`` is when the message it has just taken was sent.
    """
    row = upsert(s, Worker).values(
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
    """Deletes a worker that has shut down."""
    s.execute(delete(Worker).where(Worker.id == worker_id))


def forgettable(s: Session, seconds: float) -> bool:
    """Returns True if a worker was last seen more than ``seconds`` ago."""
    return bool(s.scalar(select(exists().where(~_within(s, seconds)))))


def forget(s: Session, seconds: float) -> None:
    """Deletes the workers that were last seen more than ``seconds`` ago."""
    s.execute(delete(Worker).where(~_within(s, seconds)))


def alive(s: Session, queue: Queue, seconds: float = GONE_SECONDS) -> int:
    """Counts the workers of ``queue`` that were seen in the last ``seconds``."""
    return counts(s, seconds)[queue]


def quick_at_bfloat16(s: Session, queue: Queue, seconds: float = GONE_SECONDS) -> bool | None:
    """Returns True if all workers of ``queue`` that are alive are quick at bf16; None if none is alive."""
    found = list(s.scalars(select(Worker.bfloat16).where(Worker.queue == queue, _within(s, seconds))))
    return all(found) if found else None


def counts(s: Session, seconds: float = GONE_SECONDS) -> dict[Queue, int]:
    """Counts the workers of every queue that were seen in the last ``seconds``."""
    query = select(Worker.queue, func.count()).where(_within(s, seconds)).group_by(Worker.queue)
    return dict.fromkeys(Queue, 0) | dict(s.execute(query).all())


def known(s: Session) -> list[tuple[Worker, str | None]]:
    """Returns all stored workers with the experiment they work for, by queue, host and process."""
    same = and_(TaskRun.task == Worker.task, TaskRun.argument == Worker.subject)
    query = select(Worker, TaskRun.experiment_id).outerjoin(TaskRun, same)
    found = s.execute(query.order_by(Worker.queue, Worker.host, Worker.pid))
    return [(worker, experiment_id) for worker, experiment_id in found]


def busy(s: Session, seconds: float = GONE_SECONDS) -> dict[Queue, int]:
    """Counts the busy workers of every queue."""
    query = select(Worker.queue, func.count()).where(_within(s, seconds), Worker.task.is_not(None))
    return dict.fromkeys(Queue, 0) | dict(s.execute(query.group_by(Worker.queue)).all())


def last_seen(s: Session, queue: Queue) -> datetime | None:
    """Returns the last heartbeat of ``queue``, or None if no worker is stored."""
    return s.scalars(select(func.max(Worker.seen_at)).where(Worker.queue == queue)).one()


def _within(s: Session, seconds: float) -> ColumnElement[bool]:
    return Worker.seen_at > clock.now(s) - timedelta(seconds=seconds)
