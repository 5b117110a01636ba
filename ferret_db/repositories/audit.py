"""The audit log. :func:`record` appends an entry in the transaction of the action that it describes.

Appending locks the log until the transaction ends. Call it last, when no other lock has yet to be taken.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from ferret_core.protocol import audit
from ferret_core.protocol.audit import AuditAction, AuditRecord, Head
from ferret_db import clock
from ferret_db.pagination import Page, page, seek
from ferret_db.statements import upsert
from ferret_db.tables import AuditEntry, AuditHead

logger = logging.getLogger(__name__)

ADMIN = "admin"
"""Actor of the admin token, and of sessions opened with it."""
HOST = "host"
"""Actor of commands on the service's machine."""
NOBODY = "nobody"
"""Actor without a valid credential."""

_ID = 1


class AuditFilter(NamedTuple):
    """A filter of entries; None matches any."""

    actor: str | None = None
    action: str | None = None
    subject: str | None = None


def record(s: Session, actor: str, action: AuditAction, subject: str, **detail: Any) -> AuditEntry:
    """Appends the entry that ``actor`` did ``action`` to ``subject``, under the next number.

    ``detail`` is bounded (``protocol.audit.bounded``); put no secret into it. The entry's number and hash are logged
    too, so that a head of the chain is known outside the database, wherever the logs are sent.
    """
    previous = _take_next(s)
    link = AuditRecord(
        number=previous.number + 1,
        time=clock.now(s),
        actor=actor,
        action=action,
        subject=subject,
        detail=audit.bounded(detail),
        previous=previous.hash,
    )
    entry = AuditEntry(**link.model_dump(), hash=link.hash)
    s.add(entry)
    s.flush()
    s.execute(update(AuditHead).where(AuditHead.id == _ID).values(hash=link.hash))
    logger.info("audit %d:%s %s %s %s", link.number, link.hash, actor, action, subject)
    return entry


def head(s: Session) -> Head:
    """Returns the end of the log from its row."""
    row = s.get(AuditHead, _ID, populate_existing=True)
    return audit.EMPTY if row is None else Head(row.number, row.hash)


def list_page(
    s: Session, wanted: AuditFilter, limit: int, cursor: str | None = None, *, oldest_first: bool = False
) -> Page[AuditEntry]:
    """Lists the ``wanted`` entries by number, newest first."""
    query = select(AuditEntry).filter_by(**{name: v for name, v in wanted._asdict().items() if v is not None})
    rows = s.scalars(seek(query, [AuditEntry.number], cursor, limit, descending=not oldest_first)).all()
    return page(rows, limit, lambda row: (row.number,))


def _take_next(s: Session) -> Head:
    """Returns the end of the log and locks it until this transaction ends."""
    first = upsert(s, AuditHead).values(id=_ID, number=1, hash="")
    taken = s.execute(
        first.on_conflict_do_update(index_elements=["id"], set_={"number": AuditHead.number + 1}).returning(
            AuditHead.number, AuditHead.hash
        )
    ).one()
    return Head(taken.number - 1, taken.hash)
