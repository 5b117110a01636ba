"""``file://``: files under one folder, written temp → fsync → rename → fsync of the folder.

Rename alone is not durable: the file's bytes and the folder's entry are each flushed (see PostgreSQL's
``durable_rename``). Room is checked before writing, so that a full disk is a message and not half a file.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from ferret_core.protocol.digest import digest_bytes, digest_file
from ferret_core.protocol.errors import FerretError
from ferret_core.storage._base import StoredFile, blob_location

RESERVE_BYTES = 32 << 20
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Backend:
    """Content-addressed files: ``<kind>/<first two digits>/<digest>``, and folders of named files."""

    def __init__(self, url: str) -> None:
        self.root = Path(unquote(urlsplit(url).path)).resolve()
        self.root.mkdir(parents=True, exist_ok=True)

    def put_bytes(self, data: bytes, kind: str) -> StoredFile:
        digest = digest_bytes(data)
        stored = StoredFile(digest, len(data), blob_location(kind, digest))
        target = self.path(stored.location)
        if not (target.is_file() and target.stat().st_size == len(data) and digest_file(target) == digest):
            self._need_room(len(data))
            write_durably(target, data)
        return stored

    def put_folder(self, folder: Path, kind: str, last: str) -> dict[str, StoredFile]:
        names = [*sorted(path.name for path in folder.iterdir() if path.name != last), last]
        digests = {name: digest_file(folder / name) for name in names}
        base = f"{kind}/{digests[last]}"
        stored = {name: StoredFile(digests[name], (folder / name).stat().st_size, f"{base}/{name}") for name in names}
        self._need_room(sum(file.size for file in stored.values()))
        for name in names:
            _copy_durably(folder / name, self.path(stored[name].location))
        return stored

    def read(self, location: str, digest: str) -> bytes:
        with self.open(location) as file:
            data = file.read()
        if digest_bytes(data) != digest:
            raise FerretError("storage.corrupt", f"{location} does not match its digest {digest[:12]}…")
        return data

    def open(self, location: str) -> BinaryIO:
        try:
            return self.path(location).open("rb")
        except FileNotFoundError as error:
            raise _missing(location) from error

    def path(self, location: str) -> Path:
        path = (self.root / location).resolve()
        if not path.is_relative_to(self.root):
            raise FerretError.of_field("storage.missing", "location", location, "lies outside the storage folder")
        return path

    def size(self, location: str) -> int:
        try:
            return self.path(location).stat().st_size
        except FileNotFoundError as error:
            raise _missing(location) from error

    def delete(self, locations: Iterable[str]) -> None:
        for location in locations:
            self.path(location).unlink(missing_ok=True)

    def _need_room(self, size: int) -> None:
        free = shutil.disk_usage(self.root).free
        if free < size + RESERVE_BYTES:
            raise FerretError(
                "storage.full",
                f"{self.root} has {free >> 20} MiB free, {size + RESERVE_BYTES >> 20} MiB are needed: make room, "
                "or point FERRET_STORAGE_URL to a larger disk",
            )


def write_durably(target: Path, data: bytes) -> None:
    """``data`` at ``target``, all or nothing, on disk when this returns; ``storage.full`` if there is no room."""
    with _replacing(target) as file:
        file.write(data)


def _copy_durably(source: Path, target: Path) -> None:
    with source.open("rb") as reader, _replacing(target) as file:
        shutil.copyfileobj(reader, file, 1 << 20)


@contextmanager
def _replacing(target: Path) -> Generator[BinaryIO]:
    """A temporary file beside ``target`` that takes its place when the block ends well."""
    make_folder_durably(target.parent)
    handle, name = tempfile.mkstemp(prefix=".tmp-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
        flush_folder(target.parent)
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise FerretError("storage.full", f"no room left for {target}: make room and try again") from error
        raise
    finally:
        Path(name).unlink(missing_ok=True)


def make_folder_durably(folder: Path) -> None:
    """The folder and its missing parents, each entered in its parent on disk."""
    if folder.is_dir():
        return
    make_folder_durably(folder.parent)
    folder.mkdir(exist_ok=True)
    flush_folder(folder.parent)


def flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _missing(location: str) -> FerretError:
    return FerretError("storage.missing", f"{location} is not in the storage folder")
