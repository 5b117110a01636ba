"""A real file system of a few megabytes in memory, which tests fill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """Mounted at ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self, left: int = 0) -> None:
        """Until so many bytes are left."""
        found = os.statvfs(self.path)
        with self._filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, found.f_bavail * found.f_frsize - left))

    def make_room(self) -> None:
        self._filler.unlink(missing_ok=True)


@contextmanager
def mounted(folder: Path, mebibytes: int) -> Iterator[SmallDisk]:
    """In a new ``folder``; skips the test where it may not be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
