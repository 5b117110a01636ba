"""Request counters with time windows: per process, or shared between processes through Redis."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import redis
from limits.storage import Storage

from ferret_runtime.broker import redis_client

logger = logging.getLogger(__name__)

SHARE_SECONDS = 1.0
"""Interval of exchanges with Redis."""


class Counts(Storage):
    """Counters in memory, with expiry on the monotonic clock.

    The library's own storage has a thread that scans all keys up to a hundred times a second, which takes a CPU core
    with 100,000 participants. This one scans them whenever their number has doubled.
    """

    STORAGE_SCHEME = None
    FEWEST = 1024

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._found: dict[str, tuple[int, float]] = {}
        self._sweep_at = self.FEWEST

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        now = time.monotonic()
        with self._lock:
            count, until = self._found.get(key, (0, 0.0))
            if until <= now:
                count, until = 0, now + expiry
                self._sweep(now)
            self._found[key] = count + amount, until
            return count + amount

    async def incr_now(self, key: str, expiry: int) -> int:
        """Adds one for ``expiry`` seconds in all processes and returns the total."""
        return self.incr(key, expiry)

    def get(self, key: str) -> int:
        count, until = self._found.get(key, (0, 0.0))
        return count if until > time.monotonic() else 0

    def get_expiry(self, key: str) -> float:
        """Returns the time of expiry on the monotonic clock."""
        return self._found.get(key, (0, 0.0))[1]

    @property
    def base_exceptions(self) -> type[Exception]:
        return ValueError

    def check(self) -> bool:
        return True

    def reset(self) -> int:
        with self._lock:
            count = len(self._found)
            self._found.clear()
            return count

    def clear(self, key: str) -> None:
        with self._lock:
            self._found.pop(key, None)

    def close(self) -> None:
        """Does nothing, since no resources are held."""

    def _sweep(self, now: float) -> None:
        if len(self._found) >= self._sweep_at:
            self._found = {key: held for key, held in self._found.items() if held[1] > now}
            self._sweep_at = max(self.FEWEST, 2 * len(self._found))


class SharedCounts(Counts):
    """Counters shared between processes: every second, each adds its new counts to Redis and reads the totals.

    Requests do not wait for Redis, so another process's requests count a second later. Only :meth:`incr_now` counts
    immediately in Redis. Without Redis, each process counts separately and adds its counts when Redis is back.
    """

    def __init__(self, url: str, prefix: str) -> None:
        super().__init__()
        self._redis = redis_client.connect(url)
        self._prefix = prefix
        self._new = Counter[str]()
        self._seconds: dict[str, int] = {}
        self._over = threading.Event()
        self._silent = False  # the last exchange with Redis failed
        self._now = ThreadPoolExecutor(1, "ferret-failures")
        self._thread: threading.Thread | None = None

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        count = super().incr(key, expiry, amount)
        with self._lock:
            self._new[key] += amount
            self._seconds[key] = expiry
            if self._thread is None:
                self._thread = threading.Thread(target=self._share_on, name="ferret-limits", daemon=True)
                self._thread.start()
        return count

    async def incr_now(self, key: str, expiry: int) -> int:
        if self._silent:
            return self.incr(key, expiry)
        return await asyncio.get_running_loop().run_in_executor(self._now, self._incr_now, key, expiry)

    def close(self) -> None:
        self._now.shutdown()
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        self._redis.close()

    def share(self) -> None:
        """Adds the new counts to Redis and reads the totals; raises ``redis.RedisError``."""
        with self._lock:
            self._new, new = Counter[str](), self._new
            self._seconds, seconds = {}, self._seconds
        try:
            totals = self._add(new, seconds)
        except redis.RedisError:
            with self._lock:
                for key, amount in new.items():  # counts that have expired since are dropped
                    if self._found.get(key, (0, 0.0))[1] > time.monotonic():
                        self._new[key] += amount
                        self._seconds[key] = seconds[key]
            raise
        now = time.monotonic()
        with self._lock:
            for key, (total, left) in totals.items():
                self._found[key] = total + self._new[key], now + left

    def _incr_now(self, key: str, expiry: int) -> int:
        if self._silent:
            return self.incr(key, expiry)
        try:
            total, left = self._add(Counter({key: 1}), {key: expiry})[key]
        except redis.RedisError as error:
            self._note_silence(error)
            return self.incr(key, expiry)
        super().incr(key, expiry, 0)  # sweeps if there are too many keys
        with self._lock:
            self._found[key] = total + self._new[key], time.monotonic() + left
            return total + self._new[key]

    def _add(self, new: Counter[str], seconds: dict[str, int]) -> dict[str, tuple[int, float]]:
        """Adds counts in Redis; returns, by key, the total of all processes and the seconds until it expires."""
        if not new:
            return {}
        with self._redis.pipeline(transaction=False) as pipeline:
            for key, amount in new.items():
                pipeline.incrby(self._prefix + key, amount)
                pipeline.expire(self._prefix + key, seconds[key], nx=True)
                pipeline.pttl(self._prefix + key)
            answers = pipeline.execute()
        return {
            key: (int(total), max(0, int(left)) / 1000)
            for key, total, left in zip(new, answers[::3], answers[2::3], strict=True)
        }

    def _share_on(self) -> None:
        while not self._over.wait(SHARE_SECONDS):
            try:
                self.share()
                self._silent = False
            except redis.RedisError as error:
                self._note_silence(error)

    def _note_silence(self, error: redis.RedisError) -> None:
        if not self._silent:
            logger.warning("requests are counted only in this process, since Redis does not respond: %s", error)
        self._silent = True
