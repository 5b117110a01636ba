"""How often somebody may call, counted in this process by the library ``limits`` in windows of a minute.

Whoever shows no credential, or one not known to be good, is counted by address; a participant by its id. An address may
be a hospital's only way out, or a proxy's: so failures are limited strictly, all else generously, and who has been
recognised before does not suffer from what others at its address do.
"""

from __future__ import annotations

import threading
import time

from limits import RateLimitItemPerMinute
from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter

from ferret_api.network import network
from ferret_api.settings import ApiSettings
from ferret_api.too_many import TooMany
from ferret_core.protocol.digest import digest_bytes

RECOGNISED = 200_000
"""Credentials that are remembered: twice as many as an experiment has participants."""


class RateLimits:
    """The counts of one process, which a restart forgets. For any thread."""

    def __init__(self, settings: ApiSettings) -> None:
        self._counts = Counts()
        self._limiter = FixedWindowRateLimiter(self._counts)
        self._strangers = RateLimitItemPerMinute(settings.stranger_requests_per_minute, namespace="strangers")
        self._failures = RateLimitItemPerMinute(settings.failures_per_minute, namespace="failures")
        self._participants = RateLimitItemPerMinute(settings.participant_requests_per_minute, namespace="participants")
        self._recognised: dict[str, None] = {}

    def admit_stranger(self, address: str) -> None:
        """Counts a request of somebody not recognised; ``request.too_many`` beyond a limit."""
        place = network(address)
        if not self._limiter.test(self._failures, place):
            raise self._too_many("too many wrong tokens or codes came from this address", self._failures, place)
        if not self._limiter.hit(self._strangers, place):
            raise self._too_many("too many requests came from this address", self._strangers, place)

    def failed(self, address: str) -> None:
        """Counts a wrong token or code."""
        self._limiter.hit(self._failures, network(address))

    def admit_participant(self, participant_id: str) -> None:
        """Counts a request of the participant; ``request.too_many`` beyond the limit."""
        if not self._limiter.hit(self._participants, participant_id):
            raise self._too_many("this participant calls too often", self._participants, participant_id)

    def recognise(self, credential: str) -> None:
        """Remembers a credential that was found to be good."""
        self._recognised[_key(credential)] = None
        if len(self._recognised) > RECOGNISED:
            self._recognised.pop(next(iter(self._recognised)), None)

    def recognises(self, credential: str) -> bool:
        return _key(credential) in self._recognised

    def forget(self, credential: str) -> None:
        """The credential is good no more."""
        self._recognised.pop(_key(credential), None)

    def _too_many(self, what: str, limit: RateLimitItemPerMinute, who: str) -> TooMany:
        left = self._counts.get_expiry(limit.key_for(who)) - time.monotonic()
        return TooMany(f"{what}, more than {limit.amount} within a minute", left)


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

    def _sweep(self, now: float) -> None:
        if len(self._found) >= self._sweep_at:
            self._found = {key: held for key, held in self._found.items() if held[1] > now}
            self._sweep_at = max(self.FEWEST, 2 * len(self._found))


def _key(credential: str) -> str:
    return digest_bytes(credential.encode("utf-8", "surrogateescape"))
