"""A client's state: what it keeps from one of its rounds to the next, e.g. error feedback or control variates.

A state is staged with a contribution, before that is sent, and counts once that contribution's round is committed.
A round that is not committed, or a crash between an upload and its answer, leaves the state that belongs to the model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ferret_core.protocol.wire import Arrays, decode, encode
from ferret_core.system.atomic_files import write_durably
from ferret_core.system.failpoints import failpoint


class StateStorage(Protocol):
    """Keeps the states of one client."""

    def write(self, contribution: str, state: bytes | None, committed: str | None) -> str | None:
        """Keeps the ``state`` that goes with the contribution of this digest, and returns its key.

        The ``state`` is None where the client keeps nothing. All states may go but that with the key ``committed``.
        """
        ...

    def read(self, key: str) -> bytes | None:
        """The state with this key; None if the client keeps nothing."""
        ...


class ClientState:
    """The state of one client in ``storage``; ``committed`` is the key of the one that counts, if there is one."""

    def __init__(self, storage: StateStorage, committed: str | None = None) -> None:
        self._storage = storage
        self._committed = committed

    def stage(self, contribution: str, arrays: Arrays) -> str | None:
        """Keeps ``arrays`` for the contribution of this digest, and returns the key to commit them by."""
        return self._storage.write(contribution, encode_state(arrays), self._committed)

    def commit(self, key: str) -> None:
        """The round of the state's contribution is committed: the state counts from now on."""
        self._committed = key

    def load(self) -> Arrays:
        """The committed state; empty if there is none."""
        state = None if self._committed is None else self._storage.read(self._committed)
        return {} if state is None else decode(state)[0]


class StateFolder:
    """A storage in files of ``folder`` by the contributions' digests; it survives restarts if it is ``durable``."""

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        self._folder = folder
        self._durable = durable

    def write(self, contribution: str, state: bytes | None, committed: str | None) -> str:
        for path in self._folder.glob("*"):  # with the drafts of a process that was killed
            if path.stem != committed:
                path.unlink()
        failpoint("state.dropped")
        if state is not None:
            self._write(self._path(contribution), state)
        return contribution

    def read(self, key: str) -> bytes | None:
        path = self._path(key)
        return path.read_bytes() if path.is_file() else None

    def _write(self, path: Path, state: bytes) -> None:
        if self._durable:
            write_durably(path, state)
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(state)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.safetensors"


def encode_state(arrays: Arrays) -> bytes | None:
    """The bytes of a state; None where the client keeps nothing."""
    return encode(arrays, {}) if arrays else None
