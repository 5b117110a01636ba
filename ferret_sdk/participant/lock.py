"""Locks between the processes of one machine, on every system. The kernel releases them when a process ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ferret_core.protocol.errors import FerretError
from ferret_core.system.atomic_files import disk_full_as_error

OWN_ALONE = 0o600
BETWEEN_TRIES = 0.2
"""Seconds between two attempts."""


@contextmanager
def sole(path: Path, name: str) -> Generator[None]:
    """Holds the lock at ``path`` for the participant ``name``; ``participant.in_use`` names another holder."""

    def in_use(process: str) -> FerretError:
        detail = f"{name} already takes part from this machine{process}: let it go on, or stop it before you start it"
        return FerretError("participant.in_use", f"{detail} here")

    with alone(path, in_use):
        yield


@contextmanager
def alone(path: Path, in_use: Callable[[str], FerretError]) -> Generator[None]:
    """Holds the lock at ``path``. If another process holds it, raises the error that ``in_use`` makes of its name, such
    as `` (process 7)``."""
    lock, holder = _lock(path), path.with_suffix(".pid")
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise in_use(_process(holder)) from error
    try:
        # In a separate file, since Windows allows nobody to read a locked one.
        with disk_full_as_error(holder):
            holder.write_text(f"{os.getpid()}\n")
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


@contextmanager
def in_turn(path: Path, on_wait: Callable[[], None]) -> Generator[None]:
    """Holds the lock at ``path``. If another process holds it, calls ``on_wait`` once and waits."""
    lock = _lock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        on_wait()
        lock.acquire(poll_interval=BETWEEN_TRIES)
    try:
        yield
    finally:
        lock.release()


def _lock(path: Path) -> FileLock:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return FileLock(path, mode=OWN_ALONE)


def _process(holder: Path) -> str:
    """Returns the name of the process in the file ``holder``; empty if it is not known."""
    with suppress(OSError, ValueError):
        return f" (process {int(holder.read_text())})"
    return ""
