"""Atomic and durable files: complete or absent, and on disk when the call returns.

The steps are: draft → fsync → rename → fsync of the folder. Rename alone is not durable: the file's bytes and the
folder's entry are each flushed (see PostgreSQL's ``durable_rename``). A full disk raises ``storage.full`` and leaves no
draft.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

from ferret_core.protocol.errors import FerretError
from ferret_core.system.failpoints import failpoint

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

Guard = Callable[[], AbstractContextManager[object]]


def write_durably(target: Path, data: bytes) -> None:
    """Writes ``data`` to ``target``, replacing any existing file; raises ``storage.full`` on a full disk."""
    with atomic_write(target) as file:
        file.write(data)


def create_durably(target: Path, data: bytes) -> None:
    """Writes ``data`` to ``target`` unless it exists: of several writers the first wins. Raises ``storage.full``."""
    with disk_full_as_error(target), _draft_in(target.parent, nullcontext) as draft:
        with draft.open("wb") as file:
            file.write(data)
            _flush(file)
        with suppress(FileExistsError):
            os.link(draft, target)
        flush_folder(target.parent)


@contextmanager
def atomic_write(target: Path, guard: Guard = nullcontext) -> Generator[BinaryIO]:
    """Yields a draft next to ``target`` that replaces it when the block succeeds; raises ``storage.full`` on a full
    disk.

    Both names appear under ``guard``. Only the owner may read the file.
    """
    with disk_full_as_error(target), _draft_in(target.parent, guard) as draft:
        failpoint("storage.opened")
        with draft.open("wb") as file:
            yield file
            _flush(file)
        rename_durably(draft, target, guard)


def rename_durably(draft: Path, target: Path, guard: Guard = nullcontext) -> None:
    """Renames a flushed file on the same disk to ``target``; the name is on disk when this returns."""
    failpoint("storage.synced")
    with guard():
        make_folder_durably(target.parent)
        draft.replace(target)
    failpoint("storage.renamed")
    flush_folder(target.parent)
    failpoint("storage.durable")


@contextmanager
def disk_full_as_error(what: object) -> Generator[None]:
    """Raises ``storage.full`` if the disk becomes full in the block; ``what``: the data that did not fit."""
    try:
        yield
    except FerretError:
        raise
    except Exception as error:
        if is_full(error):
            raise FerretError("storage.full", f"no space left for {what}: free some space and try again") from error
        raise


def is_full(error: BaseException) -> bool:
    """True if a disk, quota or file was full; errors of libraries in Rust are recognised by their message."""
    if isinstance(error, OSError):
        return error.errno in _NO_ROOM
    return any(f"(os error {number})" in str(error) for number in _NO_ROOM)


def make_folder_durably(folder: Path) -> None:
    """Creates the folder and its missing parents, each flushed to disk."""
    if folder.is_dir():
        return
    make_folder_durably(folder.parent)
    folder.mkdir(exist_ok=True)
    flush_folder(folder.parent)


def flush_folder(folder: Path) -> None:
    """Flushes the folder's entries to disk. Windows cannot open folders, and keeps their entries in a journal."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _draft_in(folder: Path, guard: Guard) -> Generator[Path]:
    """Yields an empty file that only its owner may read, and removes it after the block."""
    with guard():
        make_folder_durably(folder)
        handle, name = tempfile.mkstemp(prefix=".tmp-", dir=folder)
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _flush(file: BinaryIO) -> None:
    file.flush()
    failpoint("storage.written")
    os.fsync(file.fileno())
