"""Cache of one result for a short time. Concurrent callers share a single computation."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from fastapi.concurrency import run_in_threadpool

T = TypeVar("T")


class TtlCache(Generic[T]):
    """The result of ``look``, at most ``seconds`` old. Use it only on the event loop; ``look`` runs in a thread."""

    def __init__(self, look: Callable[[], T], seconds: float) -> None:
        self._look = look
        self._seconds = seconds
        self._until = 0.0
        self._lock = asyncio.Lock()
        self._found: T | None = None

    async def get(self) -> T:
        if self._found is None or time.monotonic() >= self._until:
            async with self._lock:
                if self._found is None or time.monotonic() >= self._until:
                    self._found = await run_in_threadpool(self._look)
                    self._until = time.monotonic() + self._seconds
        return self._found
