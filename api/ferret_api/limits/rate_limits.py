"""Rate limits per minute, counted with the library ``limits``, over all API processes if Redis is configured.

Unrecognised callers are counted by address, participants by id, and users by token or session. Many callers may share
one address, such as a hospital's gateway or a proxy. So failures have strict limits, other requests have generous ones,
and a recognised caller is not affected by others at its address.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

from limits import RateLimitItemPerMinute
from limits.strategies import FixedWindowRateLimiter

from ferret_api.client_network import network
from ferret_api.limits.counters import Counts, SharedCounts
from ferret_api.settings import ApiSettings
from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError


class Policy(NamedTuple):
    """A limit of ``quota`` requests within ``window`` seconds."""

    name: str
    quota: int
    window: int


class RateLimitExceeded(FerretError):
    """The error ``request.too_many``, with the whole seconds until the next attempt."""

    def __init__(self, reason: str, seconds: float, policy: Policy | None = None) -> None:
        self.retry_after = max(1, math.ceil(seconds))
        self.policy = policy
        super().__init__("request.too_many", f"{reason}; try again in {self.retry_after} s")

    @property
    def headers(self) -> dict[str, str]:
        """Headers ``Retry-After`` (RFC 9110, section 10.2.3) and policy (draft-ietf-httpapi-ratelimit-headers-10)."""
        found = {"Retry-After": str(self.retry_after)}
        if self.policy is not None:
            name, quota, window = self.policy
            found["RateLimit-Policy"] = f'"{name}";q={quota};w={window}'
            found["RateLimit"] = f'"{name}";r=0;t={self.retry_after}'
        return found


RECOGNISED = 200_000
"""Maximum number of remembered credentials, twice the participants of the largest experiment."""
ALERT_TESTS_PER_MINUTE = 10
"""Test messages of one project's alerts per minute."""
UPLOADS_AT_ONCE = 2
"""Concurrent uploads of a participant: one, and a retry after a broken connection that the server has not noticed."""
UPLOAD_RETRY_SECONDS = 5
FAILURES = "too many wrong tokens or codes, or attempts with a password, came from this address"


class RateLimits:
    """Rate limits of the API. It is thread-safe."""

    def __init__(self, settings: ApiSettings) -> None:
        self._counts = _counts(settings)
        sizing = settings.sizing
        self._limiter = FixedWindowRateLimiter(self._counts)
        self._strangers = RateLimitItemPerMinute(sizing.stranger_requests_per_minute, namespace="strangers")
        self._failures = RateLimitItemPerMinute(sizing.failures_per_minute, namespace="failures")
        self._participants = RateLimitItemPerMinute(sizing.participant_requests_per_minute, namespace="participants")
        self._users = RateLimitItemPerMinute(sizing.user_requests_per_minute, namespace="users")
        self._questions = RateLimitItemPerMinute(sizing.playground_per_minute, namespace="questions")
        self._alert_tests = RateLimitItemPerMinute(ALERT_TESTS_PER_MINUTE, namespace="alert-tests")
        self._recognised: dict[str, None] = {}

    def admit_stranger(self, address: str) -> None:
        """Counts a request of an unrecognised caller; raises ``request.too_many`` beyond a limit."""
        place = network(address)
        if not self._limiter.test(self._failures, place):
            raise self._too_many(FAILURES, self._failures, place)
        if not self._limiter.hit(self._strangers, place):
            raise self._too_many("too many requests came from this address", self._strangers, place)

    async def count_failure(self, address: str) -> None:
        """Counts a wrong credential, exactly over all API processes; raises ``request.too_many`` beyond the limit."""
        limit, place = self._failures, network(address)
        if await self._counts.incr_now(limit.key_for(place), limit.get_expiry()) > limit.amount:
            raise self._too_many(FAILURES, limit, place)

    def admit_participant(self, participant_id: str) -> None:
        """Counts a request of the participant; raises ``request.too_many`` beyond the limit."""
        if not self._limiter.hit(self._participants, participant_id):
            raise self._too_many("this participant sends too many requests", self._participants, participant_id)

    def admit_user(self, credential: str) -> None:
        """Counts a request with a user's token or session; raises ``request.too_many`` beyond the limit."""
        if not self._limiter.hit(self._users, key := _key(credential)):
            raise self._too_many("too many requests came with this token or session", self._users, key)

    def admit_question(self, user_id: str) -> None:
        """Counts a question of the user to a model; raises ``request.too_many`` beyond the limit."""
        if not self._limiter.hit(self._questions, user_id):
            raise self._too_many("too many questions were asked in the playground", self._questions, user_id)

    def admit_alert_test(self, project: str) -> None:
        """Counts a test of the project's alerts; raises ``request.too_many`` beyond the limit."""
        if not self._limiter.hit(self._alert_tests, project):
            raise self._too_many("the project's alerts were tested too often", self._alert_tests, project)

    def close(self) -> None:
        self._counts.close()

    def recognise(self, credential: str) -> None:
        """Remembers a valid credential."""
        self._recognised[_key(credential)] = None
        if len(self._recognised) > RECOGNISED:
            self._recognised.pop(next(iter(self._recognised)), None)

    def recognises(self, credential: str) -> bool:
        return _key(credential) in self._recognised

    def forget(self, credential: str) -> None:
        """Forgets a credential that has become invalid."""
        self._recognised.pop(_key(credential), None)

    def _too_many(self, what: str, limit: RateLimitItemPerMinute, who: str) -> RateLimitExceeded:
        left = self._counts.get_expiry(limit.key_for(who)) - time.monotonic()
        policy = Policy(limit.namespace, limit.amount, limit.get_expiry())
        return RateLimitExceeded(f"{what}, more than {limit.amount} within a minute", left, policy)


def _counts(settings: ApiSettings) -> Counts:
    if "broker_url" not in settings.model_fields_set:
        return Counts()
    # Several services may share one Redis. The prefix excludes the password, which is before the last @.
    service = digest_bytes(settings.database_url.rpartition("@")[2].encode())[:16]
    return SharedCounts(settings.broker_url, f"ferret:{service}:")


def _key(credential: str) -> str:
    return digest_bytes(credential.encode("utf-8", "surrogateescape"))


class UploadGate:
    """Counter of the uploads in progress. Use it only on the event loop."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def entered(self, participant: str) -> Generator[None]:
        """Counts an upload during the block; raises ``request.too_many`` beyond :data:`UPLOADS_AT_ONCE`."""
        if self._open[participant] >= UPLOADS_AT_ONCE:
            raise RateLimitExceeded(
                f"{UPLOADS_AT_ONCE} uploads of this participant are being received already", UPLOAD_RETRY_SECONDS
            )
        self._open[participant] += 1
        try:
            yield
        finally:
            self._open[participant] -= 1
            if not self._open[participant]:
                del self._open[participant]


ENTRY_PAUSE_SECONDS = 60.0
"""Minimum time between two entries of the audit log about failed sign-ins from one address."""
MOST_ENTRIES = 60
"""Maximum number of entries about all addresses within that time."""


class FailedSignIns:
    """Counter of failed sign-ins without an entry. It is thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, float] = {}  # in order of time
        self._unlisted = 0

    def count(self, address: str | None) -> int | None:
        """Counts a failed sign-in.

        Returns the number of failures without an entry since the last one if this failure gets an entry, else None."""
        place, now = network(address or ""), time.monotonic()
        with self._lock:
            self._told = {each: at for each, at in self._told.items() if now - at < ENTRY_PAUSE_SECONDS}
            if place in self._told or len(self._told) >= MOST_ENTRIES:
                self._unlisted += 1
                return None
            self._told[place] = now
            unlisted, self._unlisted = self._unlisted, 0
            return unlisted
