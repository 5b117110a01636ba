"""What a storage backend is: content-addressed files, durable when ``put`` returns, checked when read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from ferret_core.protocol.buffers import Pieces
from ferret_core.protocol.errors import FerretError
from ferret_core.storage._options import ObjectStore


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
    """A file as it is stored, which may be the draft of a writer that was killed.

    ``stored_at`` is when it was stored last, in seconds by the storage's clock.
    """

    location: str
    size: int
    stored_at: float


def corrupt(location: str, digest: str, found: str) -> FerretError:
    """Why a file whose bytes have the digest ``found`` is not what was stored."""
    return FerretError("storage.corrupt", f"{location} does not match its digest {digest}: its bytes have {found}")


def taken(place: str, found: str, owner: str) -> FerretError:
    """Why ``owner`` cannot use a storage that belongs to ``found``."""
    detail = f"{place} holds the files of another installation, {found}; this one is {owner}"
    return FerretError("storage.taken", f"{detail}: set FERRET_STORAGE_URL to a folder or prefix of its own")


def blob_location(kind: FileKind, digest: str) -> str:
    """Where every backend stores the blob of ``digest``."""
    return f"{kind}/{digest[:2]}/{digest}"


class Storage(Protocol):
    """The interface of ``ferret_core/storage/<scheme>.py``'s class ``Backend``.

    Nobody may delete a file between its ``put`` and the commit of what refers to it. So a collector deletes only what
    was stored a long time ago, and a ``put`` of bytes that are already there renews their age.
    """

    def __init__(self, url: str, store: ObjectStore | None = None) -> None:
        """``store`` says how an object store is reached; files need none."""
        ...

    def __str__(self) -> str:
        """Where it is, without a secret."""
        ...

    def claim(self, owner: str) -> None:
        """Notes the installation that this storage is of, at its first use.

        ``storage.taken`` if the files are another one's, whose collector would take ours for garbage; what else keeps
        the storage from being used is told by its own error.
        """
        ...

    def rehearse(self) -> None:
        """Does everything once that a service does with its storage; raises what keeps it from doing so."""
        ...

    def put_bytes(self, data: bytes, kind: FileKind, digest: str | None = None) -> StoredFile:
        """Stores a blob by its ``digest``, hashed here unless given; storing the same bytes twice is one file."""
        ...

    def put_pieces(self, pieces: Pieces, kind: FileKind, digest: str) -> StoredFile:
        """The same for a blob in pieces."""
        ...

    def put_file(self, path: Path, kind: FileKind, digest: str) -> StoredFile:
        """Moves in a blob that was written to a :meth:`scratch` folder or has been :meth:`growing`: it then lies at
        its :meth:`path`."""
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

    def folder(self, files: Mapping[str, str]) -> AbstractContextManager[Path]:
        """A local folder with the files of one checkpoint, given as digests by location, all of which are checked.

        It stays while the block runs. Raises as :meth:`read` does.
        """
        ...

    def open(self, location: str) -> BinaryIO:
        """The bytes as a stream, unchecked: for downloads whose reader checks the digest."""
        ...

    def path(self, location: str) -> Path:
        """Where the file lies on this machine, if it does."""
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
