"""Garbage collection of stored files: deletes files that the database has not referred to for a while."""

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
"""Upper bound of the seconds between storing a file and committing its reference, on any machine."""
EVERY_SECONDS = 24 * 3600.0


class CollectedFiles(NamedTuple):
    """Number of collected files and their bytes."""

    files: int
    bytes: int


def collect(
    database: Database, storage: Storage, grace: float = GRACE_SECONDS, *, every: float = 0, dry_run: bool = False
) -> CollectedFiles | None:
    """Deletes unreferenced files that are older than ``grace`` seconds. Returns None if this call had to skip.

    A call skips while another process collects or makes a backup, and until ``every`` seconds after the last
    collection. With ``dry_run`` it only reports what it would delete. Raises ``storage.taken`` if the storage belongs
    to another installation. The cutoff is taken before the references are read: a file that an uncommitted transaction
    refers to was stored after it.
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


def _sweep(database: Database, storage: Storage, grace: float, *, dry_run: bool) -> CollectedFiles:
    before = storage.clock() - grace
    with database.read() as s:
        named = {reference.location for reference in stored_files.of_all(s)}
    failpoint("collect.marked")
    old = (file for file in storage.list() if file.stored_at < before and file.location not in named)
    sizes = [file.size for file in old if dry_run or storage.delete(file.location, before)]
    return CollectedFiles(len(sizes), sum(sizes))
