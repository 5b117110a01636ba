"""Comparison of stored files with the digests in the database."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.task_names import TaskName
from ferret_core.storage import Storage
from ferret_db.repositories import outbox
from ferret_db.repositories.stored_files import StoredFileRef

DAMAGE = frozenset({"storage.corrupt", "storage.missing"})
"""Error codes of a missing or changed file."""


REPAIR_SECONDS = 60.0


def call_for_repair(s: Session, experiment_id: str) -> None:
    """Has a worker check the experiment's files and rebuild damaged ones, unless this was requested a minute ago."""
    if not outbox.waits(s, TaskName.REPAIR, experiment_id, REPAIR_SECONDS):
        outbox.add(s, TaskName.REPAIR, experiment_id)


def damaged(storage: Storage, files: Iterable[StoredFileRef]) -> list[StoredFileRef]:
    """Returns the files that are missing or do not match their digest. A file with several references is read once."""
    known: dict[str, bool] = {}
    found: list[StoredFileRef] = []
    for file in files:
        if file.location not in known:
            known[file.location] = is_intact(storage, file.location, file.digest)
        if not known[file.location]:
            found.append(file)
    return found


def is_intact(storage: Storage, location: str, digest: str) -> bool:
    """Returns True if the file exists and has that digest."""
    try:
        storage.verify(location, digest)
    except FerretError as error:
        if error.code not in DAMAGE:
            raise
        return False
    return True
