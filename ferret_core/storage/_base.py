"""What a storage backend is: content-addressed files, durable when ``put`` returns, checked when read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from ferret_core.protocol.pieces import Pieces


class FileKind(StrEnum):
    """What a stored file is; also the folder of the storage that it lies in."""

    CHECKPOINT = "checkpoints"
    CONTRIBUTION = "contributions"
    MEMORY = "memories"
    UPDATE = "updates"


class StoredFile(NamedTuple):
    """A stored file: its BLAKE3 digest, its size in bytes, and its path relative to the storage's root."""

    digest: str
    size: int
    location: str


class ListedFile(NamedTuple):
    """A file as it is on disk, which may be the draft of a writer that was killed.

    ``stored_at`` is when it was stored last, in seconds by the storage's clock.
    """

    location: str
    size: int
    stored_at: float


def blob_location(kind: FileKind, digest: str) -> str:
    """Where every backend stores the blob of ``digest``."""
    return f"{kind}/{digest[:2]}/{digest}"


class Storage(Protocol):
    """The interface of ``ferret_core/storage/<scheme>.py``'s class ``Backend``.

    Nobody may delete a file between its ``put`` and the commit of what refers to it. So a collector deletes only what
    was stored a long time ago, and a ``put`` of bytes that are already there renews their age.
    """

    def __init__(self, url: str) -> None: ...

    def put_bytes(self, data: bytes, kind: FileKind, digest: str | None = None) -> StoredFile:
        """Stores a blob by its ``digest``, hashed here unless given; storing the same bytes twice is one file."""
        ...

    def put_pieces(self, pieces: Pieces, kind: FileKind, digest: str) -> StoredFile:
        """The same for a blob in pieces."""
        ...

    def put_file(self, path: Path, kind: FileKind, digest: str) -> StoredFile:
        """Moves in a blob that was written to a :meth:`scratch` folder or has been :meth:`growing`."""
        ...

    def require_room(self, size: int) -> None:
        """``storage.full`` unless ``size`` bytes fit in."""
        ...

    def growing(self, name: str) -> Path:
        """Where a file of this name grows until :meth:`put_file` moves it in. It outlives its writer, and is collected
        once nobody has added to it for long."""
        ...

    def scratch(self, size: int) -> AbstractContextManager[Path]:
        """An empty folder to write files into that are to be stored; ``storage.full`` unless ``size`` bytes fit in."""
        ...

    def put_folder(self, folder: Path, kind: FileKind, last: str) -> dict[str, StoredFile]:
        """Moves in every file of a flat :meth:`scratch` folder, by name; ``last`` becomes visible after all others."""
        ...

    def read(self, location: str, digest: str) -> bytes:
        """The bytes; ``storage.missing`` or ``storage.corrupt`` if they are not there or not those of ``digest``."""
        ...

    def view(self, location: str, digest: str) -> memoryview:
        """The same, of a large file without holding them: they are mapped once they have been checked."""
        ...

    def verify(self, location: str, digest: str) -> None:
        """Raises as :meth:`read` does, without holding the bytes."""
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

    def clock(self) -> float:
        """The time, in seconds, by the clock that notes when files are stored."""
        ...

    def list(self) -> Iterator[ListedFile]:
        """Everything stored, drafts of killed writers included, in any order."""
        ...

    def delete(self, location: str, before: float) -> bool:
        """Removes the file if it was stored last before the moment ``before``; whether it was."""
        ...

    def collecting(self, every: float) -> AbstractContextManager[bool]:
        """Whether this block may collect garbage: False while another one does or a copy of the storage is made, and
        until ``every`` seconds after the last that ended well."""
        ...

    def copying(self) -> AbstractContextManager[None]:
        """Nothing is collected while this block runs."""
        ...
