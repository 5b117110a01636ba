"""The name of this installation, which every copy of its database keeps."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from ferret_db.statements import upsert
from ferret_db.tables import Installation

_ID = 1


def name(s: Session) -> str | None:
    """Returns the name, or None before the first use."""
    return s.scalars(select(Installation.name)).one_or_none()


def name_first(s: Session, name: str) -> None:
    """Names the installation unless it has a name."""
    s.execute(upsert(s, Installation).values(id=_ID, name=name).on_conflict_do_nothing())
