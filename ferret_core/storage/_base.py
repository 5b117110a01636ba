"""What a storage backend is: content-addressed files, durable when ``put`` returns, checked when read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol


class StoredFile(NamedTuple):
    """A stored file: its BLAKE3 digest, its size in bytes, and where it lies relative to the storage's root."""

    digest: str
    size: int
    location: str


def blob_location(kind: str, digest: str) -> str:
    """Where the blob of ``digest`` lies under ``kind`` ("contributions", "memories" or "updates"), in every backend."""
    return f"{kind}/{digest[:2]}/{digest}"


class Storage(Protocol):
    """The interface of ``ferret_core/storage/<scheme>.py``'s class ``Backend``."""

    def __init__(self, url: str) -> None: ...

    def put_bytes(self, data: bytes, kind: str) -> StoredFile:
        """Stores a blob under ``kind`` by its digest; storing the same bytes twice is one file."""
        ...

    def put_folder(self, folder: Path, kind: str, last: str) -> dict[str, StoredFile]:
        """Moves in every file of a flat folder, by name; ``last`` becomes visible after all others."""
        ...

    def read(self, location: str, digest: str) -> bytes:
        """The bytes; ``storage.missing`` or ``storage.corrupt`` if they are not there or not those of ``digest``."""
        ...

    def open(self, location: str) -> BinaryIO:
        """The bytes as a stream, unchecked: for downloads whose reader checks the digest."""
        ...

    def path(self, location: str) -> Path:
        """A local path to read the file from."""
        ...

    def size(self, location: str) -> int:
        """Bytes stored; ``storage.missing`` if there is no such file."""
        ...

    def delete(self, locations: Iterable[str]) -> None:
        """Removes files; those already gone are no error."""
        ...
