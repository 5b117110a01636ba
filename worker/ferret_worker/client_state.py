"""States of simulated clients in the service's storage; the database decides which one is current."""

from __future__ import annotations

from ferret_core.client.state import ClientState
from ferret_core.protocol.spec import RoundTask
from ferret_core.storage import FileKind, Storage, blob_location
from ferret_db.repositories import contributions
from ferret_worker.worker_state import WorkerState


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
