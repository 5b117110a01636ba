"""A timer that releases an unused resource."""

from __future__ import annotations

import threading
from collections.abc import Callable


class IdleTimer:
    """``with idle:`` is a use. A thread calls ``let_go`` ``seconds`` after the last use, and never during one."""

    def __init__(self, seconds: float, let_go: Callable[[], None]) -> None:
        self._seconds = seconds
        self._let_go = let_go
        self._lock = threading.Lock()
        self._uses = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._uses += 1

    def __exit__(self, *error: object) -> None:
        timer = threading.Timer(self._seconds, self._end, [self._uses])
        timer.daemon = True
        timer.start()
        self._lock.release()

    def _end(self, uses: int) -> None:
        with self._lock:
            if uses == self._uses:
                self._let_go()
