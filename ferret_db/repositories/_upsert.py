"""``INSERT … ON CONFLICT``, which both databases support but SQLAlchemy defines once per database."""

from __future__ import annotations

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from ferret_db.tables import Base

Insert = sqlite.Insert | postgresql.Insert


def insert(s: Session, table: type[Base]) -> Insert:
    """Creates an insertion into ``table`` that supports ``on_conflict``."""
    return sqlite.insert(table) if s.get_bind().dialect.name == "sqlite" else postgresql.insert(table)
