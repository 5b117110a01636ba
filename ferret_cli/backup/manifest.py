"""Format of a backup: a tar file with the database, its referenced files, and last the manifest with every digest."""

from __future__ import annotations

from typing import IO, Literal

from blake3 import blake3
from pydantic import Field

from ferret_core.protocol.spec import StrictModel

FORMAT: Literal[1] = 1
MANIFEST = "manifest.json"
DATABASE = "ferret.db"
STORAGE = "storage"


class Entry(StrictModel):
    """A file of the backup: its size in bytes and its BLAKE3."""

    size: int = Field(ge=0)
    digest: str


class Manifest(StrictModel):
    """All preceding files in the archive, by name; ``revision`` is the database's schema. A backup must have a
    manifest.
    """

    format: Literal[1]
    created_at: str
    revision: str
    files: dict[str, Entry]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())


class Digesting:
    """A stream that digests the bytes read from it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._hasher = blake3()
        self._size = 0

    def read(self, size: int = -1, /) -> bytes:
        data = self._stream.read(size)
        self._hasher.update(data)
        self._size += len(data)
        return data

    @property
    def entry(self) -> Entry:
        """Size and digest of the bytes read so far."""
        return Entry(size=self._size, digest=self._hasher.hexdigest())
