"""Detection of a damaged SQLite file."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DatabaseError

from ferret_core.protocol.errors import FerretError

RESTORE = "restore a backup: ferret restore FILE --home NEW_FOLDER"


def is_damage(error: DatabaseError) -> bool:
    """Returns True if SQLite reports a damaged file, rather than a busy, full or missing one."""
    code = getattr(error.orig, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def damaged(reason: str) -> FerretError:
    return FerretError("database.damaged", f"{reason}; stop Ferret and {RESTORE}")
