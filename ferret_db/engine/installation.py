"""The installation: one database, and all processes that use it."""

from __future__ import annotations

import secrets

from sqlalchemy import select
from sqlalchemy.orm import Session

from ferret_core.storage import Storage
from ferret_db.database import Database
from ferret_db.repositories._upsert import insert
from ferret_db.tables import Installation

_ID = 1


def claim(database: Database, storage: Storage) -> None:
    """Records that the storage belongs to this installation. Raises ``storage.taken`` if it belongs to another one."""
    with database.read() as s:
        name = _name(s)
    if name is None:
        name = _named(database)
    storage.claim(name)


def _name(s: Session) -> str | None:
    return s.scalars(select(Installation.name)).one_or_none()


def _named(database: Database) -> str:
    """Returns the installation's name. The first use creates it, and every copy of the database keeps it."""
    with database.begin() as s:
        new = insert(s, Installation).values(id=_ID, name=f"ins_{secrets.token_hex(8)}")
        s.execute(new.on_conflict_do_nothing())
    with database.read() as s:
        name = _name(s)
    assert name is not None, "it has just been written"
    return name
