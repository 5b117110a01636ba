"""Writing of a replica's checkpoint to the storage."""

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
    """Loads the replica that ``spec`` starts from, and stores its base model.

    The model is stored as loaded, before an algorithm adapts it, with the files that define it unchanged.
    """
    loaded = load(spec.model)
    with storage.scratch(_size(loaded.model)) as folder:
        try:
            save_base(loaded, folder)
        except (TypeError, ValueError) as error:  # such as the loading library's errors about generation settings
            message = f"it can be loaded but not written ({type(error).__name__}): look at its generation_config.json"
            raise FerretError.of_field("model.invalid", "model.source", spec.model.source, message) from error
        failpoint("checkpoints.saved")
        replica = Replica(spec, loaded)
        checkpoint.seal(replica, experiment_id, folder)
        return replica, _put(storage, folder)


def store(storage: Storage, replica: Replica, experiment_id: str) -> list[ArtifactFile]:
    """Writes the checkpoint of the replica's round and returns its files. It is durable on return; the manifest is
    last.
    """
    size = _size(replica.model)
    with tracing.span("checkpoint", bytes=size), storage.scratch(size) as folder:
        checkpoint.write(replica, experiment_id, folder)
        return _put(storage, folder)


def _size(model: nn.Module) -> int:
    """Returns the bytes of the tuned weights; the checkpoint is little more."""
    return sum(weight.nbytes for weight in model.parameters() if weight.requires_grad)


def _put(storage: Storage, folder: Path) -> list[ArtifactFile]:
    failpoint("checkpoints.sealed")
    stored = storage.put_folder(folder, FileKind.CHECKPOINT, last=checkpoint.MANIFEST)
    failpoint("checkpoints.stored")
    return [ArtifactFile(name, file.size, file.digest, file.location) for name, file in stored.items()]
