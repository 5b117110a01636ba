"""Garbage collection of stored files: deletes those that the database has not referred to for a while."""

from __future__ import annotations

import logging
from typing import NamedTuple

from ferret_core.storage import Storage
from ferret_core.system.failpoints import failpoint
from ferret_db.database import Database
from ferret_db.engine import installation
from ferret_db.repositories import stored_files

logger = logging.getLogger(__name__)

GRACE_SECONDS = 24 * 3600.0
"""Between storing a file and committing what names it less time passes, whatever the machine."""
EVERY_SECONDS = 24 * 3600.0


class Swept(NamedTuple):
    """What was collected: files and their bytes."""

    files: int
    bytes: int


def collect(
    database: Database, storage: Storage, grace: float = GRACE_SECONDS, *, every: float = 0, dry_run: bool = False
) -> Swept | None:
    """Deletes unreferenced files that are older than ``grace`` seconds; None if it is not this caller's turn.

    It is not while another process collects or makes a backup, and until ``every`` seconds after the last collection.
    With ``dry_run`` it only tells what it would delete. Raises ``storage.taken`` where the storage is another
    installation's. The moment that files must be older than is taken before the references are read: what a
    transaction names that is not committed yet has been stored since.
    """
    if dry_run:
        installation.claim(database, storage)
        return _sweep(database, storage, grace, dry_run=True)
    with storage.collecting(every) as turn:
        if not turn:
            return None
        installation.claim(database, storage)
        swept = _sweep(database, storage, grace, dry_run=False)
    if swept.files:
        logger.info("deleted %d files with %d bytes that nothing refers to", *swept)
    return swept


def _sweep(database: Database, storage: Storage, grace: float, *, dry_run: bool) -> Swept:
    before = storage.clock() - grace
    with database.read() as s:
        named = {reference.location for reference in stored_files.of_all(s)}
    failpoint("collect.marked")
    old = (file for file in storage.list() if file.stored_at < before and file.location not in named)
    sizes = [file.size for file in old if dry_run or storage.delete(file.location, before)]
    return Swept(len(sizes), sum(sizes))
