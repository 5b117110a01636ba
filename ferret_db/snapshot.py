"""A consistent copy of the embedded database, made while other processes write."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import make_url

from ferret_core.protocol.errors import FerretError


def snapshot(url: str, target: Path) -> None:
    """Copies the committed contents of the SQLite database at ``url`` to the file ``target``.

    One step of SQLite's backup API (https://www.sqlite.org/backup.html) copies all pages as of one moment, while
    writers continue. Raises ``settings.invalid`` for PostgreSQL, which has its own tools.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        reason = "is not a SQLite database: back up PostgreSQL with pg_dump, and copy the storage too"
        raise FerretError.of_field("settings.invalid", "FERRET_DATABASE_URL", parsed.render_as_string(), reason)
    with (
        closing(sqlite3.connect(f"{Path(str(parsed.database)).as_uri()}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(target)) as copy,
    ):
        source.backup(copy)
