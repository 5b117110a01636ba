"""A check that the database exists and is intact, made before a process works with it."""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_db import schema_version
from ferret_db.database import RESTORE, damaged, is_damage
from ferret_db.tables import Base
from ferret_runtime.settings import ServiceSettings

logger = logging.getLogger(__name__)

CHECK_SECONDS = 20.0
"""Time limit in seconds: SQLite's check reads the whole file, some hundred megabytes a second."""
STEP_INSTRUCTIONS = 100_000


def require(settings: ServiceSettings) -> None:
    """Raises ``database.damaged`` or ``database.missing`` if the database cannot be used.

    A database without tables next to a storage with files is ``database.missing``. Starting with an empty one would
    hide that experiments are gone, and garbage collection would delete their files.

    The check of a large SQLite file ends after 20 seconds with the findings so far. PostgreSQL checks its pages itself.
    """
    url = make_url(settings.database_url)
    if url.get_backend_name() == "sqlite":
        path = Path(str(url.database))
        if path.exists() and path.stat().st_size:
            _check(path)
    if schema_version.current(settings.database_url) is None and _has_files(settings):
        detail = f"{url.render_as_string()} is empty or missing, but {settings.storage_url} holds files of experiments"
        raise FerretError("database.missing", f"{detail}; {RESTORE}, or move the storage away to start empty")


def read_everywhere(s: Session) -> None:
    """Reads a row of every table. Raises ``database.damaged`` if that fails."""
    try:
        for table in Base.metadata.sorted_tables:
            s.execute(select(table).limit(1)).all()
    except DatabaseError as error:
        if is_damage(error):
            raise damaged(str(error.orig)) from error
        raise


def _has_files(settings: ServiceSettings) -> bool:
    return next(iter(settings.open_storage().list()), None) is not None


def _check(path: Path) -> None:
    """Reads every page and looks up every row (https://www.sqlite.org/pragma.html#pragma_quick_check)."""
    end = time.monotonic() + CHECK_SECONDS
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
            connection.set_progress_handler(lambda: int(time.monotonic() > end), STEP_INSTRUCTIONS)
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        logger.warning("%s is large: the check at start was ended after %.0f s", path, CHECK_SECONDS)
        return
    except sqlite3.DatabaseError as error:
        raise damaged(f"{path}: {error}") from error
    if found != "ok":
        raise damaged(f"{path}: {' '.join(found.split())}")
