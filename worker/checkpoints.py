"""Writes a replica's checkpoint into the storage."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ferret_core import checkpoint
from ferret_core.replica import Replica
from ferret_core.storage import Storage
from ferret_db.engine.checkpoints import ArtifactFile


def store(storage: Storage, replica: Replica, experiment_id: str) -> list[ArtifactFile]:
    """The files of the checkpoint at the replica's round, durable when this returns, the manifest last."""
    with tempfile.TemporaryDirectory(prefix="ferret-checkpoint-") as name:
        checkpoint.write(replica, experiment_id, Path(name))
        stored = storage.put_folder(Path(name), "checkpoints", last=checkpoint.MANIFEST)
    return [ArtifactFile(name, file.size, file.digest, file.location) for name, file in stored.items()]
