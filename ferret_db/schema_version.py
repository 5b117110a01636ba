"""The revision of a database's schema, read without Alembic: service processes check it and never migrate."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_db.database import Database, damaged, is_damage

HEAD = "0001"
"""The revision that this code needs: the newest in ``migrations/versions``."""


def revision(s: Session) -> str | None:
    """Returns the revision of the session's database, or None before the first migration."""
    if not inspect(s.connection()).has_table("alembic_version"):
        return None
    return s.scalar(text("SELECT version_num FROM alembic_version"))


def current(url: str) -> str | None:
    """Returns the database's revision, or None before the first migration. Changes no missing or empty SQLite file."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        path = Path(str(parsed.database))
        if not path.exists() or not path.stat().st_size:
            return None
    database = Database(url)
    try:
        with database.read() as s:
            return revision(s)
    finally:
        database.dispose()


def check(url: str) -> None:
    """Raises ``server.not_ready`` unless the database can be reached and is at :data:`HEAD`."""
    shown = make_url(url).render_as_string()
    try:
        found = current(url)
    except OperationalError as error:
        raise FerretError("server.not_ready", f"{shown} cannot be reached: {error.orig}") from error
    except DatabaseError as error:
        if is_damage(error):
            raise damaged(f"{shown}: {error.orig}") from error
        raise
    if found != HEAD:
        detail = f"{shown} is at revision {found or 'none'} and this version needs {HEAD}"
        raise FerretError("server.not_ready", f"{detail}; run `ferret migrate`")
