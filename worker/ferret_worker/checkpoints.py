"""Writes a replica's checkpoint into the storage."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from ferret_core import checkpoint
from ferret_core.failpoints import failpoint
from ferret_core.models.in_files import load_in_files
from ferret_core.models.load import load
from ferret_core.models.save import save
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec
from ferret_core.replica import Replica
from ferret_core.storage import FileKind, Storage
from ferret_db import tracing
from ferret_db.engine.checkpoints import ArtifactFile


def store_base(
    storage: Storage, spec: ExperimentSpec, experiment_id: str, in_files: bool = False
) -> tuple[Replica, list[ArtifactFile]]:
    """The replica that ``spec`` starts from, and its stored base model: as loaded, before an algorithm adapts it.

    ``in_files``: the model is not held in memory, where its files have it as it is to be.
    """
    loaded = (load_in_files(spec.model) if in_files else None) or load(spec.model)
    with storage.scratch(_size(loaded.model)) as folder:
        try:
            save(loaded, folder)
        except (TypeError, ValueError) as error:  # such as the loading library has about how it is to generate
            message = f"it can be loaded but not written ({type(error).__name__}): look at its generation_config.json"
            raise FerretError.of_field("model.invalid", "model.source", spec.model.source, message) from error
        failpoint("checkpoints.saved")
        # The source may be another model by now: what counts is what was written.
        written = load_in_files(_in(folder, spec.model), anywhere=True) if in_files else None
        replica = Replica(spec, written or loaded)
        checkpoint.seal(replica, experiment_id, folder)
        return replica, _put(storage, folder)


def store(storage: Storage, replica: Replica, experiment_id: str) -> list[ArtifactFile]:
    """The files of the checkpoint at the replica's round, durable when this returns, the manifest last."""
    size = _size(replica.model)
    with tracing.span("checkpoint", bytes=size), storage.scratch(size) as folder:
        checkpoint.write(replica, experiment_id, folder)
        return _put(storage, folder)


def _in(folder: Path, model: ModelSpec) -> ModelSpec:
    return ModelSpec(source=str(folder), dtype=model.dtype)


def _size(model: nn.Module) -> int:
    """The bytes of the weights that are tuned: what is written is little more."""
    return sum(weight.nbytes for weight in model.parameters() if weight.requires_grad)


def _put(storage: Storage, folder: Path) -> list[ArtifactFile]:
    failpoint("checkpoints.sealed")
    stored = storage.put_folder(folder, FileKind.CHECKPOINT, last=checkpoint.MANIFEST)
    failpoint("checkpoints.stored")
    return [ArtifactFile(name, file.size, file.digest, file.location) for name, file in stored.items()]
