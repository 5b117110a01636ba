"""This machine's copies of stored files, for uses that need a path: filled on demand, bounded in size.

A file has the same relative path as in the storage. It is verified at every use, so it needs no maintenance; the least
recently used one is dropped first. Processes of this machine may share the folder. A file being fetched is a draft
named after its digest, so that the next process continues the work of a killed one.
"""

from __future__ import annotations

import fcntl
import io
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ferret_core.protocol.digest import CHUNK_BYTES, digest_stream
from ferret_core.protocol.errors import FerretError
from ferret_core.storage.base import corrupt
from ferret_core.system.atomic_files import disk_full_as_error

logger = logging.getLogger(__name__)

DRAFTS = ".drafts"
GROWING = "growing"
FETCHED = "fetched"
DRAFT_SECONDS = 24 * 3600.0
"""A draft without additions for this long is abandoned."""
RESERVE_BYTES = 32 << 20

Fetch = Callable[[int], Iterator[bytes]]
"""Function that yields the bytes of a file from an offset."""


class _Unit(NamedTuple):
    """A unit of eviction: a file, or the folder of a checkpoint."""

    path: Path
    size: int
    used_at: float


class Cache:
    """At most ``limit`` bytes in ``root``, not counting files in use or being written."""

    def __init__(self, root: Path, limit: int) -> None:
        self.root = root
        self._limit = limit

    def path(self, location: str) -> Path:
        """Returns the path of a copy of the file; the copy may be missing."""
        path = (self.root / location).resolve()
        if not path.is_relative_to(self.root.resolve()):
            raise FerretError.of_field("storage.missing", "location", location, "is outside the storage folder")
        return path

    def growing(self, name: str) -> Path:
        """Returns the path of a growing draft of this name."""
        return self.path(f"{DRAFTS}/{GROWING}/{name}")

    def require_room(self, size: int) -> None:
        """Raises ``storage.full`` unless ``size`` bytes fit on the disk, after dropping unused copies."""
        self.root.mkdir(parents=True, exist_ok=True)
        needed = size + RESERVE_BYTES
        self._drop(needed - shutil.disk_usage(self.root).free)
        if (free := shutil.disk_usage(self.root).free) < needed:
            need = f"{self.root} has {free >> 20} MiB free, {needed >> 20} MiB are needed"
            raise FerretError("storage.full", f"{need}: free some space, or set FERRET_S3_CACHE to a larger disk")

    @contextmanager
    def scratch(self, size: int) -> Generator[Path]:
        """Creates an empty folder for files to store."""
        self.require_room(size)
        drafts = self.root / DRAFTS
        drafts.mkdir(exist_ok=True)
        with disk_full_as_error(drafts), tempfile.TemporaryDirectory(dir=drafts) as name:
            yield Path(name)

    def keep(self, path: Path, location: str) -> None:
        """Moves a file that was just stored into the cache. If its folder is dropped meanwhile, the copy is lost."""
        target = self.path(location)
        if path != target:
            with suppress(FileNotFoundError):
                target.parent.mkdir(parents=True, exist_ok=True)
                path.replace(target)

    def opened(self, location: str, digest: str, fetch: Fetch) -> BinaryIO:
        """Opens the verified file at its beginning; fetches it if no valid copy exists.

        Raises ``storage.corrupt`` if the fetched bytes do not have ``digest``.
        """
        path = self.path(location)
        while True:
            with suppress(FileNotFoundError):
                file = path.open("rb")
                if digest_stream(file) == digest:
                    os.utime(path)
                    file.seek(0)
                    return file
                file.close()
                logger.warning("the copy of %s has been damaged; it is fetched again", location)
                path.unlink(missing_ok=True)
            if file := self._fetched(path, location, digest, fetch):
                return file

    @contextmanager
    def holding(self, folder: Path) -> Generator[None]:
        """Prevents ``folder`` from being dropped while the block runs."""
        handle = _held(folder)
        try:
            yield
        finally:
            os.close(handle)

    def trim(self) -> None:
        """Drops abandoned drafts, and copies until the rest is within the limit."""
        _drop_old(self.root / DRAFTS)
        self._drop(sum(unit.size for unit in _units(self.root)) - self._limit)

    def _drop(self, excess: int) -> None:
        """Drops copies of at least ``excess`` bytes, the least recently used first; fewer if the rest is in use."""
        if excess <= 0:
            return
        for unit in sorted(_units(self.root), key=lambda unit: unit.used_at):
            if excess > 0 and _dropped(unit.path):
                excess -= unit.size

    def _fetched(self, path: Path, location: str, digest: str, fetch: Fetch) -> BinaryIO | None:
        """Fetches the file, dropping others to make room; returns None if another process was faster."""
        draft = self.root / DRAFTS / FETCHED / digest
        draft.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if path.exists() or not _is_at(file.fileno(), draft):
                return None
            self._fill(file, location, digest, fetch)
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.replace(path)
            found = path.open("rb")
        self.trim()
        return found

    def _fill(self, file: BinaryIO, location: str, digest: str, fetch: Fetch) -> None:
        """Writes the whole file; an earlier attempt's bytes are fetched again if they do not match."""
        for start in (file.seek(0, os.SEEK_END), 0):
            with disk_full_as_error(self.root):
                file.truncate(start)
                for chunk in fetch(start):
                    file.write(chunk)
                file.flush()
            file.seek(0)
            if (found := digest_stream(file)) == digest:
                return
            file.truncate(0)
            if start == 0:
                raise corrupt(location, digest, found)


def chunks(stream: io.RawIOBase) -> Iterator[bytes]:
    """Yields the rest of a stream, and closes it at its end."""
    with stream:
        while chunk := stream.read(CHUNK_BYTES):
            yield chunk


def _held(folder: Path) -> int:
    """Opens a descriptor that prevents the folder from being dropped."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_SH)
        if _is_at(handle, folder):
            return handle
        os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    """True if the open file still has this name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _units(root: Path) -> Iterator[_Unit]:
    """Yields the units: subfolders of each kind's folder, with a checkpoint's files or files with the same prefix."""
    for folder in root.glob("[!.]*/*/"):
        try:
            files = [_Unit(path, *_size(path)) for path in folder.iterdir()]
        except FileNotFoundError:  # another process dropped it
            continue
        if folder.parent.name == "checkpoints":
            yield _Unit(folder, sum(file.size for file in files), max((file.used_at for file in files), default=0))
        else:
            yield from files


def _size(path: Path) -> tuple[int, float]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0.0
    return found.st_size, found.st_mtime


def _dropped(path: Path) -> bool:
    """Drops a unit; False for a folder that is held."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return True
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def _drop_old(drafts: Path) -> None:
    given_up = time.time() - DRAFT_SECONDS
    for folder, _, names in os.walk(drafts, topdown=False):
        for name in names:
            path = Path(folder) / name
            if _size(path)[1] < given_up:
                path.unlink(missing_ok=True)
        with suppress(OSError):
            if Path(folder).stat().st_mtime < given_up:
                Path(folder).rmdir()
