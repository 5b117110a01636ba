"""The installation: one database, and all processes that use it."""

from __future__ import annotations

import secrets

from ferret_core.storage import Storage
from ferret_db.database import Database
from ferret_db.repositories import installation


def claim(database: Database, storage: Storage) -> None:
    """Records that the storage belongs to this installation. Raises ``storage.taken`` if it belongs to another one."""
    with database.read() as s:
        name = installation.name(s)
    if name is None:
        name = _create_name(database)
    storage.claim(name)


def _create_name(database: Database) -> str:
    with database.begin() as s:
        installation.name_first(s, f"ins_{secrets.token_hex(8)}")
    with database.read() as s:
        name = installation.name(s)
    assert name is not None, "it has just been written"
    return name
