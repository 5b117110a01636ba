"""Task messages that commit with the change that calls for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import cast

from sqlalchemy import delete, exists, func, or_, select, update
from sqlalchemy.orm import Session

from ferret_core.protocol.tasks import TaskName
from ferret_db import clock
from ferret_db.tables import OutboxMessage

_ADDED = "ferret_outbox"


def add(s: Session, task: TaskName, argument: str) -> OutboxMessage:
    """Stores a message; ``Database.begin`` sends it after the commit."""
    message = OutboxMessage(task=task, argument=argument)
    s.add(message)
    _hand_over(s, [message])
    return message


def added(s: Session) -> list[OutboxMessage]:
    """The messages that this transaction wants sent, in order."""
    return list(cast(list[OutboxMessage], s.info.get(_ADDED, [])))


def resend(s: Session, older_than: float) -> list[OutboxMessage]:
    """Hands over again what was not sent within ``older_than`` seconds; skips what another process has in hand."""
    unsent = s.scalars(
        select(OutboxMessage)
        .where(OutboxMessage.sent_at.is_(None), OutboxMessage.created_at < clock.now(s) - timedelta(seconds=older_than))
        .order_by(OutboxMessage.id)
        .with_for_update(skip_locked=True)
    ).all()
    _hand_over(s, unsent)
    return list(unsent)


def sent(s: Session, ids: Sequence[int]) -> None:
    """Notes that the messages were sent."""
    s.execute(
        update(OutboxMessage).where(OutboxMessage.id.in_(ids)).values(sent_at=clock.utcnow()),
        execution_options={"synchronize_session": False},
    )


def waiting(s: Session, task: TaskName, argument: str, seconds: float) -> bool:
    """Whether such a message is still unsent, or was added within the last ``seconds``."""
    recent = OutboxMessage.created_at > clock.now(s) - timedelta(seconds=seconds)
    same = OutboxMessage.argument == argument, OutboxMessage.task == task
    return bool(s.scalar(select(exists().where(*same, or_(OutboxMessage.sent_at.is_(None), recent)))))


def forget(s: Session, older_than: float) -> None:
    """Deletes what was sent more than ``older_than`` seconds ago."""
    s.execute(
        delete(OutboxMessage).where(OutboxMessage.sent_at < clock.now(s) - timedelta(seconds=older_than)),
        execution_options={"synchronize_session": False},
    )


def unsent(s: Session) -> int:
    """How many messages wait."""
    return s.scalars(select(func.count()).where(OutboxMessage.sent_at.is_(None))).one()


def _hand_over(s: Session, messages: Sequence[OutboxMessage]) -> None:
    """An attempt counts before it is made, so that one which kills its process counts too."""
    for message in messages:
        message.attempts += 1
    s.flush()
    cast(list[OutboxMessage], s.info.setdefault(_ADDED, [])).extend(messages)
