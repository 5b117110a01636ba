"""How often somebody may call, counted by the library ``limits`` in windows of a minute, over all processes of the API
where a Redis is configured.

A caller without a credential, or with one that is not known to be good, is counted by address, a participant by its id,
and a user by token or session. An address may be a hospital's only way out, or a proxy's. So failures are limited
strictly and all else generously, and a recognised caller does not suffer from what others at its address do.
"""

from __future__ import annotations

import time

from limits import RateLimitItemPerMinute
from limits.strategies import FixedWindowRateLimiter

from ferret_api.client_network import network
from ferret_api.limits.counters import Counts, SharedCounts
from ferret_api.limits.errors import Policy, TooMany
from ferret_api.settings import ApiSettings
from ferret_core.protocol.digest import digest_bytes

RECOGNISED = 200_000
"""Credentials that are remembered: twice as many as an experiment has participants."""
ALERT_TESTS_PER_MINUTE = 10
"""Of one project."""
FAILURES = "too many wrong tokens or codes, or attempts with a password, came from this address"


class RateLimits:
    """For any thread."""

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
        """Counts a request of somebody not recognised; ``request.too_many`` beyond a limit."""
        place = network(address)
        if not self._limiter.test(self._failures, place):
            raise self._too_many(FAILURES, self._failures, place)
        if not self._limiter.hit(self._strangers, place):
            raise self._too_many("too many requests came from this address", self._strangers, place)

    async def count_failure(self, address: str) -> None:
        """Counts a wrong token or code, or an attempt with a password; ``request.too_many`` beyond the limit.

        All processes of the API count as one here, however fast the failures follow each other.
        """
        limit, place = self._failures, network(address)
        if await self._counts.incr_now(limit.key_for(place), limit.get_expiry()) > limit.amount:
            raise self._too_many(FAILURES, limit, place)

    def admit_participant(self, participant_id: str) -> None:
        """Counts a request of the participant; ``request.too_many`` beyond the limit."""
        if not self._limiter.hit(self._participants, participant_id):
            raise self._too_many("this participant calls too often", self._participants, participant_id)

    def admit_user(self, credential: str) -> None:
        """Counts a request with the admin token or a session; ``request.too_many`` beyond the limit."""
        if not self._limiter.hit(self._users, key := _key(credential)):
            raise self._too_many("too many requests came with this token or session", self._users, key)

    def admit_question(self, user_id: str) -> None:
        """Counts a question of the user to a model; ``request.too_many`` beyond the limit."""
        if not self._limiter.hit(self._questions, user_id):
            raise self._too_many("too many questions were asked in the playground", self._questions, user_id)

    def admit_alert_test(self, project: str) -> None:
        """Counts a test of one of the project's alerts; ``request.too_many`` beyond the limit."""
        if not self._limiter.hit(self._alert_tests, project):
            raise self._too_many("the project's alerts were tested too often", self._alert_tests, project)

    def close(self) -> None:
        self._counts.close()

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
        policy = Policy(limit.namespace, limit.amount, limit.get_expiry())
        return TooMany(f"{what}, more than {limit.amount} within a minute", left, policy)


def _counts(settings: ApiSettings) -> Counts:
    if "broker_url" not in settings.model_fields_set:
        return Counts()
    # One Redis may serve several services; without the password, which is in front of the last @.
    service = digest_bytes(settings.database_url.rpartition("@")[2].encode())[:16]
    return SharedCounts(settings.broker_url, f"ferret:{service}:")


def _key(credential: str) -> str:
    return digest_bytes(credential.encode("utf-8", "surrogateescape"))
