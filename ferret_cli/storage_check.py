"""Check of the server's stored files on this machine against its database, and their repair."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

from ferret_core.storage import FileKind
from ferret_db import schema_version
from ferret_db.database import Database
from ferret_db.engine.file_integrity import Inconsistency, altered, damaged
from ferret_db.repositories import stored_files
from ferret_db.repositories.stored_files import StoredFileRef
from ferret_runtime.settings import ServiceSettings


class Checked(NamedTuple):
    """Result of a check: the number of files read, the damaged ones, and rows that contradict files or ledger."""

    files: int
    damaged: list[StoredFileRef]
    altered: list[Inconsistency]

    @property
    def missed(self) -> list[StoredFileRef]:
        """The damage that matters: all but contributions that are in the model already."""
        return [file for file in self.damaged if file.needed or file.kind != FileKind.CONTRIBUTION]


def check(settings: ServiceSettings, experiments: Sequence[str | None] = (None,)) -> Checked:
    """Reads all files that the database names, or only the experiments' files."""
    schema_version.check(settings.database_url)
    database, storage = Database(settings.database_url), settings.open_storage()
    with database.read() as s:
        files = [file for id in experiments for file in stored_files.of_all(s, id)]
        rows = [row for id in experiments for row in altered(s, storage, id)]
    database.dispose()
    return Checked(len({file.location for file in files}), damaged(storage, files), rows)


def repair(settings: ServiceSettings, found: Checked) -> Checked:
    """Rebuilds damaged files as far as possible; returns the remaining damage in the same experiments."""
    experiments = sorted({file.experiment_id for file in found.damaged})
    if not experiments:
        return Checked(0, [], found.altered)
    # The workers' code, which imports torch, runs in a separate process.
    command = [sys.executable, "-P", "-m", "ferret_worker.repair", *experiments]
    subprocess.run(command, stdout=sys.stderr, check=False)
    return check(settings, experiments)
