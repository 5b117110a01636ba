"""A process shows that it works by touching a file, so that a supervisor or a container's health check can watch it.

A thread touches the file every second. A process that was stopped (SIGSTOP) or that cannot get its interpreter's lock
touches nothing. The thread also watches the main thread: when that has sat in one wait for a minute, the thread stops
touching. A long step of training is no such wait, because it uses the processor; nor is a wait for a child process
that computes, or for a disk. On other systems than Linux only the first half is known.
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
"""A main thread that has used no processor time for so long, outside of the disk, is blocked."""


class Heartbeat(threading.Thread):
    """Touches ``path`` every second until the main thread is blocked; start it from anywhere."""

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
        """Whether the main thread has got on within the time allowed."""
        now, work = time.monotonic(), _work_done()
        if work is None or work != self._work:
            self._work, self._moved = work or 0, now
        return now - self._moved < self._blocked_seconds


def _work_done() -> int | None:
    """A number that grows while the main thread or a child process uses the processor; None: it waits for a disk, or
    this system does not tell."""
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
    """Processor time of a child in clock ticks; 0 once it has ended."""
    try:
        fields = _fields(f"/proc/{pid}/stat")
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def _fields(path: str) -> list[str]:
    """Of proc_pid_stat(5), what follows the name: the state, the parent, …"""
    return Path(path).read_text().rpartition(")")[2].split()
