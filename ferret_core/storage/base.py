"""Storage backends: content-addressed files, durable when ``put`` returns, verified when read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from ferret_core.protocol.buffers import Pieces
from ferret_core.protocol.errors import FerretError


class ObjectStore(NamedTuple):
    """Options that are not in the storage's URL; credentials come from the library's standard sources.

    ``cache`` is a folder of this machine with at most ``cache_bytes`` of read or written data. Files larger than
    ``part_bytes`` are sent in parts of this size. A failing request is sent up to ``attempts`` times, and fails after
    ``timeout_seconds`` without data.
    """

    cache: Path
    cache_bytes: int = 64 << 30
    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None
    part_bytes: int = 16 << 20
    attempts: int = 5
    timeout_seconds: float = 20.0


class FileKind(StrEnum):
    """Kind of a stored file; also its folder in the storage."""

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
    """A file in the storage, which may be the unfinished draft of a killed writer.

    ``stored_at``: time of the last store, in seconds by the storage's clock.
    """

    location: str
    size: int
    stored_at: float


def corrupt(location: str, digest: str, found: str) -> FerretError:
    """Creates the error about a file with bytes of the digest ``found``."""
    return FerretError("storage.corrupt", f"{location} does not match its digest {digest}: its bytes have {found}")


def taken(place: str, found: str, owner: str) -> FerretError:
    """Creates the error about ``owner``'s use of a storage that belongs to ``found``."""
    detail = f"{place} holds the files of another installation, {found}; this one is {owner}"
    return FerretError("storage.taken", f"{detail}: set FERRET_STORAGE_URL to a separate folder or prefix")


def blob_location(kind: FileKind, digest: str) -> str:
    """Returns the location of the blob of ``digest``, the same in every backend."""
    return f"{kind}/{digest[:2]}/{digest}"


class Storage(Protocol):
    """The interface of the class ``Backend`` in ``ferret_core/storage/<scheme>.py``.

    A file must not be deleted between its ``put`` and the commit of a reference to it. A collector therefore deletes
    only files that were stored long ago, and a ``put`` of existing bytes renews their age.
    """

    def __init__(self, url: str, store: ObjectStore | None = None) -> None:
        """``store`` is the connection to an object store; files need none."""
        ...

    def __str__(self) -> str:
        """Returns the storage's location, without secrets."""
        ...

    def claim(self, owner: str) -> None:
        """Records the installation that owns this storage, at its first use.

        Raises ``storage.taken`` if it belongs to another one: its collector would delete our files as garbage. Other
        obstacles raise their own errors.
        """
        ...

    def rehearse(self) -> None:
        """Performs every operation of a service once; raises the first error."""
        ...

    def put_bytes(self, data: bytes, kind: FileKind, digest: str | None = None) -> StoredFile:
        """Stores a blob by its ``digest``, hashed here unless given; storing the same bytes twice gives one file."""
        ...

    def put_pieces(self, pieces: Pieces, kind: FileKind, digest: str) -> StoredFile:
        """Stores a blob in pieces like :meth:`put_bytes`."""
        ...

    def put_file(self, path: Path, kind: FileKind, digest: str) -> StoredFile:
        """Moves a blob from a :meth:`scratch` folder or from :meth:`growing` into the storage, to its :meth:`path`."""
        ...

    def require_room(self, size: int) -> None:
        """Raises ``storage.full`` unless ``size`` bytes fit."""
        ...

    def growing(self, name: str) -> Path:
        """Returns the path where a file of this name grows until :meth:`put_file` moves it into the storage.

        It outlives its writer, and is collected after a long time without additions.
        """
        ...

    def scratch(self, size: int) -> AbstractContextManager[Path]:
        """Creates an empty folder for files to store; raises ``storage.full`` unless ``size`` bytes fit."""
        ...

    def put_folder(self, folder: Path, kind: FileKind, last: str) -> dict[str, StoredFile]:
        """Moves all files of a flat :meth:`scratch` folder into the storage, by name; ``last`` becomes visible last."""
        ...

    def read(self, location: str, digest: str) -> bytes:
        """Returns the bytes; raises ``storage.missing`` or, if they do not have ``digest``, ``storage.corrupt``."""
        ...

    def view(self, location: str, digest: str) -> memoryview:
        """Returns the bytes without loading a large file: it is verified, then mapped."""
        ...

    def verify(self, location: str, digest: str) -> None:
        """Raises like :meth:`read`, without holding the bytes."""
        ...

    def folder(self, files: Mapping[str, str]) -> AbstractContextManager[Path]:
        """Creates a local folder with the verified files of one checkpoint, given as digests by location.

        It exists while the block runs. Raises like :meth:`read`.
        """
        ...

    def open(self, location: str) -> BinaryIO:
        """Opens the bytes as an unverified stream, for downloads that are verified by the reader."""
        ...

    def path(self, location: str) -> Path:
        """Returns the file's path on this machine; the file may be missing."""
        ...

    def size(self, location: str) -> int:
        """Returns the stored bytes; raises ``storage.missing``."""
        ...

    def clock(self) -> float:
        """Returns the time, in seconds, by the clock of ``stored_at``."""
        ...

    def list(self) -> Iterator[ListedFile]:
        """Lists all stored files, including drafts of killed writers, in any order."""
        ...

    def delete(self, location: str, before: float) -> bool:
        """Deletes the file if it was last stored before the time ``before``; True if it was deleted."""
        ...

    def collecting(self, every: float) -> AbstractContextManager[bool]:
        """Grants this block the collection of garbage.

        False while another collector runs or the storage is being copied, and until ``every`` seconds after the last
        successful collection.
        """
        ...

    def copying(self) -> AbstractContextManager[None]:
        """Prevents the collection of garbage while this block runs."""
        ...
