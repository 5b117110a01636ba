"""A generation: a set of a model's files that is written once, by ranges of elements, and only read afterwards."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ferret_core.models.safetensors_map import Array
from ferret_core.projection.blocks import HeldRange
from ferret_core.system.atomic_files import disk_full_as_error

LOCK = "lock"
_WITHOUT = {errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EMLINK}
"""Errors of file systems that cannot link."""


def prepare(source: Path, target: Path, arrays: Mapping[str, Array], moved: frozenset[str]) -> None:
    """Creates the files of ``target``, as long as the files of ``source``, and copies everything except the ``moved``
    arrays.

    Allocates their space now: raises ``storage.full`` before anything has moved.
    """
    target.mkdir()
    with disk_full_as_error(target):
        for path in sorted(source.iterdir()):
            within = {name: array for name, array in arrays.items() if array.file == path.name}
            header = min(array.begin for array in within.values())
            with path.open("rb") as old, (target / path.name).open("wb") as new:
                os.posix_fallocate(new.fileno(), 0, os.fstat(old.fileno()).st_size)
                new.write(old.read(header))
                for name in within.keys() - moved:
                    old.seek(within[name].begin)
                    new.seek(within[name].begin)
                    new.write(old.read(within[name].bytes))


class Writer:
    """Writes moved elements to their places in the files of ``folder``: a target of ``project.moved_to``."""

    def __init__(
        self, folder: Path, arrays: Mapping[str, Array], names: Mapping[str, str], held: Mapping[str, HeldRange]
    ) -> None:
        """``names``: each parameter's name in the files. ``held``: the elements to write here."""
        self.held, self._folder = held, folder
        self._arrays = {name: arrays[names[name]] for name in held}
        files = {array.file for array in self._arrays.values()}
        self._handles = {name: os.open(folder / name, os.O_WRONLY) for name in files}

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: Any) -> None:
        for handle in self._handles.values():
            os.close(handle)

    def write(self, parameter: str, begin: int, elements: Tensor) -> None:
        """Writes elements; raises ``storage.full`` if a file system has no room for space that it had reserved."""
        array = self._arrays[parameter]
        view = elements.view(torch.uint8).numpy().data
        at = array.begin + begin * array.dtype.itemsize
        with disk_full_as_error(self._folder / array.file):
            while view:
                written = os.pwrite(self._handles[array.file], view, at)
                view, at = view[written:], at + written


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
