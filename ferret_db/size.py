"""The size of the database."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.orm import Session


def size(s: Session) -> int:
    """Returns the bytes of the whole database with its indices. For SQLite: its pages, without the write-ahead log."""
    if s.get_bind().dialect.name == "postgresql":
        return int(s.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
    pages, each = (int(s.execute(text(f"PRAGMA {name}")).scalar_one()) for name in ("page_count", "page_size"))
    return pages * each
