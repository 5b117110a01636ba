"""File permissions: Ferret's files are private to their owner, even in a home that others can read."""

from __future__ import annotations

import logging
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ferret_core.protocol.errors import FerretError

log = logging.getLogger(__name__)

UMASK = 0o077
FILES = ("*.db", "*.db-wal", "*.db-shm", "admin.token", "server.json", "serve.lock", "logs/*", "broker/*/*.conf")
FOLDERS = ("logs", "broker", "storage", "heartbeats", "participants")


def restrict_home(home: Path) -> None:
    """Makes this process and its children create files of mode 0600 and folders of mode 0700; fixes Ferret's files in
    ``home``.

    On Windows a user's own folders are closed to others by inheritance, and files have no such modes.

    Below a folder of mode 0700 other users reach nothing, so the storage's files keep their modes. The home itself,
    links and other users' files stay unchanged.
    """
    if sys.platform == "win32":
        return
    os.umask(UMASK)
    for path, mode in _own(home):
        with suppress(FileNotFoundError):
            found = path.lstat()
            if found.st_uid == os.getuid() and not stat.S_ISLNK(found.st_mode) and found.st_mode & UMASK:
                path.chmod(mode)


def restrict_secret_file(path: Path) -> None:
    """Closes a file with a secret that others can read, and logs a warning; raises ``secret.exposed`` if that fails.

    The required modes are the same as ssh's for a key.
    """
    if sys.platform == "win32" or not path.stat().st_mode & UMASK:
        return
    with suppress(OSError):
        path.chmod(0o600)
    if path.stat().st_mode & UMASK:
        detail = f"{path} holds a secret and can be read by others: chmod 600 it, or use a disk that keeps modes"
        raise FerretError("secret.exposed", detail)
    log.warning("%s could be read by others, and is closed now: if they may have read it, request a new code", path)


def _own(home: Path) -> Iterator[tuple[Path, int]]:
    for pattern in FILES:
        yield from ((path, 0o600) for path in home.glob(pattern))
    for name in FOLDERS:
        yield home / name, 0o700
