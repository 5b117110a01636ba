"""One process at a time, by a locked file that names it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TextIO


class LockHolder(Exception):
    """Another process, ``pid``, holds the lock."""

    def __init__(self, pid: str) -> None:
        super().__init__(pid)
        self.pid = pid


def take(path: Path) -> TextIO:
    """Locks the file until it is closed or the process ends; raises :class:`LockHolder` if it is locked already."""
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        holder = file.read().strip() or "unknown"
        file.close()
        raise LockHolder(holder) from error
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file
