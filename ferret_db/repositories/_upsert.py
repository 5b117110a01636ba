"""``INSERT … ON CONFLICT``, which both databases know but SQLAlchemy writes for each in its own module."""

from __future__ import annotations

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from ferret_db.tables import Base

Insert = sqlite.Insert | postgresql.Insert


def insert(s: Session, table: type[Base]) -> Insert:
    """An insertion into ``table`` that can say what to do ``on_conflict``."""
    return sqlite.insert(table) if s.get_bind().dialect.name == "sqlite" else postgresql.insert(table)
