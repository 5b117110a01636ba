"""``file://``: files under one folder, each written durably.

Free space is checked before writing, so that a full disk gives a message and not half a file.

A file's modification time is the time of its last store. Deletion checks it and deletes atomically with respect to
writers: it holds an exclusive lock; renaming and renewing share it (flock(2), released by the kernel with the process).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from ferret_core.protocol.buffers import Pieces, mapped, size_of
from ferret_core.protocol.digest import digest_bytes, digest_file, digest_stream
from ferret_core.protocol.errors import FerretError
from ferret_core.storage.base import FileKind, ListedFile, ObjectStore, StoredFile, blob_location, corrupt, taken
from ferret_core.system.atomic_files import (
    atomic_write,
    create_durably,
    disk_full_as_error,
    flush_folder,
    make_folder_durably,
    rename_durably,
    write_durably,
)
from ferret_core.system.failpoints import failpoint

RESERVE_BYTES = 32 << 20
READ_BYTES = 1 << 20
"""Larger files are mapped for a view."""
WRITING_LOCK = ".writing"
COLLECTED = ".collected"
OWNER = ".owner"
DRAFTS = ".drafts"
GROWING = "growing"


class Backend:
    """Content-addressed files: ``<kind>/<first two digits>/<digest>``, and folders of named files."""

    def __init__(self, url: str, store: ObjectStore | None = None) -> None:
        self.root = Path(unquote(urlsplit(url).path)).resolve()
        self.root.mkdir(parents=True, exist_ok=True)

    def __str__(self) -> str:
        return str(self.root)

    def claim(self, owner: str) -> None:
        path = self.root / OWNER
        if not path.exists():
            create_durably(path, owner.encode())
        found = path.read_text()
        if found != owner and next(self.list(), None) is not None:
            raise taken(str(self), found, owner)
        if found != owner:
            write_durably(path, owner.encode())

    def rehearse(self) -> None:
        self.require_room(0)
        with self.scratch(0) as folder:
            (folder / "rehearsal").touch()

    def put_bytes(self, data: bytes, kind: FileKind, digest: str | None = None) -> StoredFile:
        return self.put_pieces((data,), kind, digest or digest_bytes(data))

    def put_pieces(self, pieces: Pieces, kind: FileKind, digest: str) -> StoredFile:
        stored = StoredFile(digest, size_of(pieces), blob_location(kind, digest))
        if not self._renew(stored):
            self.require_room(stored.size)
            with atomic_write(self.root / stored.location, self._writing) as file:
                file.writelines(pieces)
        return stored

    def put_file(self, path: Path, kind: FileKind, digest: str) -> StoredFile:
        stored = StoredFile(digest, path.stat().st_size, blob_location(kind, digest))
        self._move_in(path, stored)
        return stored

    def require_room(self, size: int) -> None:
        free = shutil.disk_usage(self.root).free
        if free < size + RESERVE_BYTES:
            raise FerretError(
                "storage.full",
                f"{self.root} has {free >> 20} MiB free, {size + RESERVE_BYTES >> 20} MiB are needed: free some space, "
                "or set FERRET_STORAGE_URL to a larger disk",
            )

    def growing(self, name: str) -> Path:
        return self.path(f"{DRAFTS}/{GROWING}/{name}")

    @contextmanager
    def scratch(self, size: int) -> Generator[Path]:
        self.require_room(size)
        drafts = self.root / DRAFTS
        with ExitStack() as stack:
            stack.enter_context(disk_full_as_error(drafts))
            with self._writing():
                make_folder_durably(drafts)
                name = stack.enter_context(tempfile.TemporaryDirectory(dir=drafts))
            yield Path(name)

    def put_folder(self, folder: Path, kind: FileKind, last: str) -> dict[str, StoredFile]:
        names = [*sorted(path.name for path in folder.iterdir() if path.name != last), last]
        digests = {name: digest_file(folder / name) for name in names}
        base = f"{kind}/{digests[last]}"
        stored = {name: StoredFile(digests[name], (folder / name).stat().st_size, f"{base}/{name}") for name in names}
        for name in names:
            if name == last:
                failpoint("storage.unsealed")
            self._move_in(folder / name, stored[name])
        return stored

    def read(self, location: str, digest: str) -> bytes:
        with self.open(location) as file, _readable(location):
            data = file.read()
        if (found := digest_bytes(data)) != digest:
            raise corrupt(location, digest, found)
        return data

    def view(self, location: str, digest: str) -> memoryview:
        if self.size(location) <= READ_BYTES:
            return memoryview(self.read(location, digest))
        with self.open(location) as file:
            _check(file, location, digest)
            return mapped(file)

    def verify(self, location: str, digest: str) -> None:
        with self.open(location) as file:
            _check(file, location, digest)

    @contextmanager
    def folder(self, files: Mapping[str, str]) -> Generator[Path]:
        for location, digest in files.items():
            self.verify(location, digest)
        yield self.path(next(iter(files))).parent

    def open(self, location: str) -> BinaryIO:
        try:
            return self.path(location).open("rb")
        except FileNotFoundError as error:
            raise _missing(location) from error

    def path(self, location: str) -> Path:
        path = (self.root / location).resolve()
        if not path.is_relative_to(self.root):
            raise FerretError.of_field("storage.missing", "location", location, "is outside the storage folder")
        return path

    def size(self, location: str) -> int:
        try:
            return self.path(location).stat().st_size
        except FileNotFoundError as error:
            raise _missing(location) from error

    def clock(self) -> float:
        path = self.root / WRITING_LOCK
        path.touch(0o600)  # on a network's file system the server sets the time
        return path.stat().st_mtime

    def list(self) -> Iterator[ListedFile]:
        for path in self._paths():
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            yield ListedFile(str(path.relative_to(self.root)), found.st_size, found.st_mtime)

    def delete(self, location: str, before: float) -> bool:
        path = self.path(location)
        with self._locked(WRITING_LOCK, fcntl.LOCK_EX), suppress(FileNotFoundError):
            if path.stat().st_mtime < before:
                path.unlink()
                failpoint("storage.deleted")
                self._remove_empty(path.parent)
                return True
        return False

    @contextmanager
    def collecting(self, every: float) -> Generator[bool]:
        with self._locked(COLLECTED, fcntl.LOCK_EX | fcntl.LOCK_NB) as handle:
            due = handle is not None and self.clock() - os.fstat(handle).st_mtime >= every
            yield due
            if handle is not None and due:
                os.utime(handle)

    @contextmanager
    def copying(self) -> Generator[None]:
        with self._locked(COLLECTED, fcntl.LOCK_SH):
            yield

    def _paths(self) -> Iterator[Path]:
        """Yields every file except Ferret's own, which are in the root itself."""
        for folder, _, names in os.walk(self.root):
            if Path(folder) != self.root:
                yield from (Path(folder) / name for name in names)

    def _move_in(self, path: Path, file: StoredFile) -> None:
        if not self._renew(file):
            with disk_full_as_error(path):
                _seal(path)
                rename_durably(path, self.root / file.location, self._writing)

    def _renew(self, file: StoredFile) -> bool:
        """True if the complete file already exists; it then counts as stored now."""
        path = self.root / file.location
        try:
            with path.open("rb") as reader:
                if os.fstat(reader.fileno()).st_size != file.size or digest_stream(reader) != file.digest:
                    return False
            with self._writing():
                os.utime(path)
        except OSError:
            return False
        flush_folder(path.parent)  # its writer may have died before this
        failpoint("storage.renewed")
        return True

    def _writing(self) -> AbstractContextManager[object]:
        """Prevents deletion while the block runs."""
        return self._locked(WRITING_LOCK, fcntl.LOCK_SH)

    @contextmanager
    def _locked(self, name: str, how: int) -> Generator[int | None]:
        """Yields the lock file's descriptor; None if another process holds a lock that must not be waited for."""
        handle = os.open(self.root / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield handle if _lock(handle, how) else None
        finally:
            os.close(handle)

    def _remove_empty(self, folder: Path) -> None:
        with suppress(OSError):
            while folder != self.root:
                folder.rmdir()
                folder = folder.parent


def _seal(file: Path) -> None:
    """Makes a file written by another library durable, new and readable only by its owner."""
    handle = os.open(file, os.O_RDWR)
    try:
        os.fchmod(handle, 0o600)
        os.utime(handle)
        os.fsync(handle)
    finally:
        os.close(handle)


def _lock(handle: int, how: int) -> bool:
    try:
        fcntl.flock(handle, how)
    except BlockingIOError:
        return False
    return True


def _check(file: BinaryIO, location: str, digest: str) -> None:
    with _readable(location):
        found = digest_stream(file)
    if found != digest:
        raise corrupt(location, digest, found)


@contextmanager
def _readable(location: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise FerretError("storage.corrupt", f"{location} cannot be read: {error.strerror}") from error


def _missing(location: str) -> FerretError:
    return FerretError("storage.missing", f"{location} is not in the storage folder")
