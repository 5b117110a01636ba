"""Writes a replica's checkpoint into the storage."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ferret_core import checkpoint
from ferret_core.models.load import load
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica import Replica
from ferret_core.storage import Storage
from ferret_db.engine.checkpoints import ArtifactFile


def store_base(storage: Storage, spec: ExperimentSpec, experiment_id: str) -> tuple[Replica, list[ArtifactFile]]:
    """The replica that ``spec`` starts from, and its stored base model: as loaded, before an algorithm adapts it."""
    with _scratch() as name:
        folder, loaded = Path(name), load(spec.model)
        checkpoint.save(loaded, folder)
        replica = Replica(spec, loaded)
        checkpoint.seal(replica, experiment_id, folder)
        return replica, _put(storage, folder)


def store(storage: Storage, replica: Replica, experiment_id: str) -> list[ArtifactFile]:
    """The files of the checkpoint at the replica's round, durable when this returns, the manifest last."""
    with _scratch() as name:
        checkpoint.write(replica, experiment_id, Path(name))
        return _put(storage, Path(name))


def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="ferret-checkpoint-")


def _put(storage: Storage, folder: Path) -> list[ArtifactFile]:
    stored = storage.put_folder(folder, "checkpoints", last=checkpoint.MANIFEST)
    return [ArtifactFile(name, file.size, file.digest, file.location) for name, file in stored.items()]
