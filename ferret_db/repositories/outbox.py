"""Task messages that commit with the change that calls for them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import cast

from sqlalchemy import ColumnElement, SQLColumnExpression, delete, exists, insert, or_, select, update
from sqlalchemy.orm import Session

from ferret_core.protocol.tasks import TaskName
from ferret_db import clock
from ferret_db.tables import OutboxMessage

_ADDED = "ferret_outbox"


def add(s: Session, task: TaskName, argument: str) -> None:
    """Stores a message; ``Database.begin`` sends it after the commit."""
    add_all(s, task, [argument])


def add_all(s: Session, task: TaskName, arguments: Sequence[str]) -> None:
    """Stores a message for each argument, to be sent in their order."""
    if not arguments:
        return
    # An attempt counts before it is made, so that one which kills its process counts too.
    rows = [{"task": task, "argument": argument, "attempts": 1} for argument in arguments]
    stored = {message.argument: message for message in s.scalars(insert(OutboxMessage).returning(OutboxMessage), rows)}
    _hand_over(s, [stored[argument] for argument in arguments])


def added(s: Session) -> list[OutboxMessage]:
    """The messages that this transaction wants sent, in order."""
    return list(cast(list[OutboxMessage], s.info.get(_ADDED, [])))


@contextmanager
def savepoint(s: Session) -> Generator[None]:
    """A savepoint for the block; undone by an exception, it takes the block's messages back too."""
    before = added(s)
    try:
        with s.begin_nested():
            yield
    except BaseException:
        s.info[_ADDED] = before
        raise


def resend(s: Session, older_than: float) -> None:
    """Hands over again what was not sent within ``older_than`` seconds; skips what another process has in hand."""
    unsent = (
        select(OutboxMessage.id)
        .where(OutboxMessage.sent_at.is_(None), OutboxMessage.created_at < clock.now(s) - timedelta(seconds=older_than))
        .with_for_update(skip_locked=True)
    )
    again = s.scalars(
        update(OutboxMessage)
        .where(OutboxMessage.id.in_(unsent))
        .values(attempts=OutboxMessage.attempts + 1)
        .returning(OutboxMessage),
        execution_options={"synchronize_session": False, "populate_existing": True},
    )
    _hand_over(s, sorted(again, key=lambda message: message.id))


def sent(s: Session, ids: Sequence[int]) -> None:
    """Notes that the messages were sent."""
    s.execute(
        update(OutboxMessage).where(OutboxMessage.id.in_(ids)).values(sent_at=clock.utcnow()),
        execution_options={"synchronize_session": False},
    )


def waiting(s: Session, task: TaskName, argument: str, seconds: float) -> bool:
    """Whether such a message is still unsent, or was added within the last ``seconds``."""
    return bool(s.scalar(select(called(s, task, argument, seconds))))


def called(s: Session, task: TaskName, argument: str | SQLColumnExpression[str], seconds: float) -> ColumnElement[bool]:
    """The same as a condition, for an ``argument`` that may be another table's column."""
    recent = OutboxMessage.created_at > clock.now(s) - timedelta(seconds=seconds)
    same = OutboxMessage.argument == argument, OutboxMessage.task == task
    return exists().where(*same, or_(OutboxMessage.sent_at.is_(None), recent))


def forget(s: Session, older_than: float) -> None:
    """Deletes what was sent more than ``older_than`` seconds ago; what another process deletes is left to it."""
    old = (
        select(OutboxMessage.id)
        .where(OutboxMessage.sent_at < clock.now(s) - timedelta(seconds=older_than))
        .with_for_update(skip_locked=True)
    )
    s.execute(delete(OutboxMessage).where(OutboxMessage.id.in_(old)), execution_options={"synchronize_session": False})


def _hand_over(s: Session, messages: Sequence[OutboxMessage]) -> None:
    cast(list[OutboxMessage], s.info.setdefault(_ADDED, [])).extend(messages)
