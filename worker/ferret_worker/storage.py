"""A worker's files in the storage: checkpoints, a round's contributions, and states of simulated clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from torch import nn

from ferret_core.client.state import ClientState
from ferret_core.contribution import SealedContribution, decode_stored
from ferret_core.models.load import load
from ferret_core.models.save import save_base
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.replica import checkpoint
from ferret_core.replica.bases import with_bases
from ferret_core.replica.replica import Replica
from ferret_core.rounds.cost import numbers_sent
from ferret_core.storage import FileKind, Storage, blob_location
from ferret_core.system.failpoints import failpoint
from ferret_db.engine.checkpoints import ArtifactFile
from ferret_db.repositories import contributions
from ferret_runtime import tracing
from ferret_worker.worker_state import WorkerState


def store_base(storage: Storage, spec: ExperimentSpec, experiment_id: str) -> tuple[Replica, list[ArtifactFile]]:
    """Loads the replica that ``spec`` starts from, and stores its base model.

    The model is stored as loaded, before an algorithm adapts it, with the files that define it unchanged
    and the algorithm's bases.
    """
    loaded = with_bases(spec, load(spec.model))
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


def store_checkpoint(storage: Storage, replica: Replica, experiment_id: str) -> list[ArtifactFile]:
    """Writes the checkpoint of the replica's round, durably and the manifest last, and returns its files."""
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


class FrozenContributions:
    """The contributions with these digests, in participant order, read again on each use and checked against the
    digests.

    A large one is memory-mapped. ``between`` is called after each is read, and may raise to stop. ``numbers`` holds the
    number of values in each.
    """

    def __init__(
        self, storage: Storage, digests: Mapping[str, str], between: Callable[[], None] = lambda: None
    ) -> None:
        self._storage = storage
        self._digests = dict(sorted(digests.items()))
        self._between = between
        self.numbers: dict[str, int] = {}

    def __iter__(self) -> Iterator[SealedContribution]:
        for participant, digest in self._digests.items():
            sealed = decode_stored(self._storage.view(blob_location(FileKind.CONTRIBUTION, digest), digest), digest)
            self._between()
            self.numbers[participant] = numbers_sent(sealed.contribution)
            yield sealed


def view_contributions(storage: Storage, digests: Mapping[str, str]) -> dict[str, memoryview]:
    """Returns the bytes of the contributions with these digests, by participant, checked against the digests.

    Large ones are memory-mapped.
    """
    return {
        name: storage.view(blob_location(FileKind.CONTRIBUTION, digest), digest) for name, digest in digests.items()
    }


def client_state(context: WorkerState, task: RoundTask) -> ClientState:
    """Returns the state of the task's client after its last round committed before the task's round."""
    with context.database.read() as s:
        committed = contributions.memory_of(s, task.experiment, task.participant, task.round)
    return ClientState(StateBlobs(context.storage), committed)


class StateBlobs:
    """A storage keyed by the states' own digests. The contribution's row names its state, the round's commit commits
    it, and states without a row are garbage-collected.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def write(self, contribution: str, state: bytes | None, committed: str | None) -> str | None:
        return None if state is None else self._storage.put_bytes(state, FileKind.MEMORY).digest

    def read(self, key: str) -> bytes:
        """Returns the state; raises ``storage.corrupt`` if the file is damaged or missing."""
        return self._storage.read(blob_location(FileKind.MEMORY, key), key)
