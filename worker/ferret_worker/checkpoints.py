"""Writes a replica's checkpoint into the storage."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from ferret_core.models.load import load
from ferret_core.models.save import save_base
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica import checkpoint
from ferret_core.replica.replica import Replica
from ferret_core.storage import FileKind, Storage
from ferret_core.system.failpoints import failpoint
from ferret_db.engine.checkpoints import ArtifactFile
from ferret_runtime import tracing


def store_base(storage: Storage, spec: ExperimentSpec, experiment_id: str) -> tuple[Replica, list[ArtifactFile]]:
    """The replica that ``spec`` starts from, and its stored base model: as loaded, before an algorithm adapts it, with
    the files that define it as they were read."""
    loaded = load(spec.model)
    with storage.scratch(_size(loaded.model)) as folder:
        try:
            save_base(loaded, folder)
        except (TypeError, ValueError) as error:  # such as the loading library has about how it is to generate
            message = f"it can be loaded but not written ({type(error).__name__}): look at its generation_config.json"
            raise FerretError.of_field("model.invalid", "model.source", spec.model.source, message) from error
        failpoint("checkpoints.saved")
        replica = Replica(spec, loaded)
        checkpoint.seal(replica, experiment_id, folder)
        return replica, _put(storage, folder)


def store(storage: Storage, replica: Replica, experiment_id: str) -> list[ArtifactFile]:
    """The files of the checkpoint at the replica's round, durable when this returns, the manifest last."""
    size = _size(replica.model)
    with tracing.span("checkpoint", bytes=size), storage.scratch(size) as folder:
        checkpoint.write(replica, experiment_id, folder)
        return _put(storage, folder)


def _size(model: nn.Module) -> int:
    """The bytes of the weights that are tuned: what is written is little more."""
    return sum(weight.nbytes for weight in model.parameters() if weight.requires_grad)


def _put(storage: Storage, folder: Path) -> list[ArtifactFile]:
    failpoint("checkpoints.sealed")
    stored = storage.put_folder(folder, FileKind.CHECKPOINT, last=checkpoint.MANIFEST)
    failpoint("checkpoints.stored")
    return [ArtifactFile(name, file.size, file.digest, file.location) for name, file in stored.items()]
