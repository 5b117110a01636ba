"""Counts of requests in windows of time: in this process, and through Redis together with all others."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter

import redis
from limits.storage import Storage

from ferret_db.broker import redis_client

logger = logging.getLogger(__name__)

SHARE_SECONDS = 1.0
"""Between two exchanges with Redis."""


class Counts(Storage):
    """Counts in memory, by elapsed time.

    The library's own storage starts a thread that walks over all keys, up to a hundred times a second: with 100,000
    participants that takes a processor. This one walks once whenever the number of keys has doubled.
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

    def get(self, key: str) -> int:
        count, until = self._found.get(key, (0, 0.0))
        return count if until > time.monotonic() else 0

    def get_expiry(self, key: str) -> float:
        """On the monotonic clock."""
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
        """Nothing is held."""

    def _sweep(self, now: float) -> None:
        if len(self._found) >= self._sweep_at:
            self._found = {key: held for key, held in self._found.items() if held[1] > now}
            self._sweep_at = max(self.FEWEST, 2 * len(self._found))


class SharedCounts(Counts):
    """The same, of which every second what is new is added to Redis, and what all have counted is taken from there.

    No request waits for Redis: another process's requests count a second later. Without Redis each process counts on
    its own, and what it has counted is added when Redis is back.
    """

    def __init__(self, url: str, prefix: str) -> None:
        super().__init__()
        self._redis = redis_client.connect(url)
        self._prefix = prefix
        self._new = Counter[str]()
        self._seconds: dict[str, int] = {}
        self._over = threading.Event()
        self._silent = False
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

    def close(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        self._redis.close()

    def share(self) -> None:
        """Exchanges with Redis what is new; raises ``redis.RedisError``."""
        with self._lock:
            self._new, new = Counter[str](), self._new
            self._seconds, seconds = {}, self._seconds
        try:
            totals = self._add(new, seconds)
        except redis.RedisError:
            with self._lock:
                for key, amount in new.items():  # what has expired since no longer counts
                    if self._found.get(key, (0, 0.0))[1] > time.monotonic():
                        self._new[key] += amount
                        self._seconds[key] = seconds[key]
            raise
        now = time.monotonic()
        with self._lock:
            for key, (total, left) in totals.items():
                self._found[key] = total + self._new[key], now + left

    def _add(self, new: Counter[str], seconds: dict[str, int]) -> dict[str, tuple[int, float]]:
        """By key: what all have counted, and the seconds until that begins anew."""
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
                if not self._silent:
                    logger.warning("requests are counted in this process alone, Redis does not answer: %s", error)
                self._silent = True
