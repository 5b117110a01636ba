"""A process's folder for copies of a model's files. Folders of ended processes are removed."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
import weakref
from pathlib import Path

from ferret_core.system.atomic_files import disk_full_as_error

LOCK = "lock"
_WITHOUT = {errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EMLINK}
"""Errors of file systems that cannot link."""


class ScratchFolder:
    """A new folder below ``root``, locked while this process lives and removed with this object."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        with (root / LOCK).open("wb") as one_at_a_time:  # otherwise a folder that is not locked yet would be removed
            fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
            _sweep(root)
            self.path = Path(tempfile.mkdtemp(dir=root))
            handle = _locked(self.path)
        assert handle is not None
        self.remove = weakref.finalize(self, _remove, self.path, handle)


def _sweep(root: Path) -> None:
    """Removes the folders that no process holds: only those left by a killed process."""
    for folder in root.iterdir():
        if (folder / LOCK).exists() and (handle := _locked(folder)) is not None:
            _remove(folder, handle)


def _locked(folder: Path) -> int | None:
    """Opens and locks the folder until the handle is closed; None if another process holds it."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _remove(folder: Path, handle: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(handle)


def link(source: Path, target: Path) -> None:
    """Links the file under another name, or copies it if the file system cannot link; raises ``storage.full``."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in _WITHOUT:
            raise
        with disk_full_as_error(target):
            shutil.copyfile(source, target)
