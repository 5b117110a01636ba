"""Heartbeat: a process touches a file while it works, for a supervisor or a container's health check.

A thread touches the file every second. A process that is stopped (SIGSTOP) or cannot get its interpreter's lock does
not touch it. The thread also watches the main thread: after one minute in a single wait, the thread stops touching. A
long step of training is not such a wait, because it uses the processor; neither is a wait for a child process that
computes, or for a disk. On systems other than Linux the main thread is not watched.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from pathlib import Path

logger = logging.getLogger(__name__)

BEAT_SECONDS = 1.0
BLOCKED_SECONDS = 60.0
"""A main thread without processor time or disk wait for this long counts as blocked."""


class Heartbeat(threading.Thread):
    """Touches ``path`` every second until the main thread is blocked; it can be started from any thread."""

    def __init__(self, path: Path, blocked_seconds: float = BLOCKED_SECONDS) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self._path = path
        self._blocked_seconds = blocked_seconds
        self._work = -1
        self._moved = time.monotonic()
        self._warned = False

    def run(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            self._beat()
            time.sleep(BEAT_SECONDS)

    def _beat(self) -> None:
        if self._moves():
            self._warned = False
            try:
                self._path.touch(0o600)
            except OSError:
                logger.exception("could not touch %s; will retry", self._path)
        elif not self._warned:
            self._warned = True
            logger.error("the main thread has been in one wait for %.0f s", self._blocked_seconds)

    def _moves(self) -> bool:
        """True if the main thread has progressed within the allowed time."""
        now, work = time.monotonic(), _work_done()
        if work is None or work != self._work:
            self._work, self._moved = work or 0, now
        return now - self._moved < self._blocked_seconds


def _work_done() -> int | None:
    """Returns a number that grows while the main thread or a child process uses the processor.

    None if it waits for a disk, or if the system does not report this.
    """
    if sys.platform != "linux":
        return None
    own = f"/proc/self/task/{os.getpid()}"
    try:
        if _fields(f"{own}/stat")[0] == "D":
            return None
        children = Path(f"{own}/children").read_text().split()
    except OSError:
        return None
    main = threading.main_thread().ident
    assert main is not None, "the main thread runs"
    return time.clock_gettime_ns(time.pthread_getcpuclockid(main)) + sum(map(_ticks, children))


def _ticks(pid: str) -> int:
    """Returns the processor time of a child in clock ticks; 0 if it has ended."""
    try:
        fields = _fields(f"/proc/{pid}/stat")
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def _fields(path: str) -> list[str]:
    """Returns the fields of proc_pid_stat(5) after the name: the state, the parent, …"""
    return Path(path).read_text().rpartition(")")[2].split()
