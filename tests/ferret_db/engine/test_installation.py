"""A storage is one installation's: another one's collector would take its files for garbage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import delete

from ferret_core.storage import FileKind, open_storage
from ferret_db.database import Database
from ferret_db.engine import installation
from ferret_db.engine.garbage_collection import collect
from ferret_db.tables import Installation
from tests.refusals import refused

pytestmark = pytest.mark.about_database


def test_another_installation_collects_nothing(database: Database, tmp_path: Path) -> None:
    storage = open_storage(f"file://{tmp_path}/storage")
    installation.claim(database, storage)
    stored = storage.put_bytes(b"of the first", FileKind.UPDATE)
    installation.claim(database, storage)
    with database.begin() as s:  # what follows is another database's
        s.execute(delete(Installation))
    acts: list[Callable[[], object]] = [
        lambda: installation.claim(database, storage),
        lambda: collect(database, storage, grace=-100),
        lambda: collect(database, storage, grace=-100, dry_run=True),
    ]
    for act in acts:
        with refused("storage.taken"):
            act()
    assert storage.read(stored.location, stored.digest) == b"of the first"
