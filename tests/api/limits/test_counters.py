"""Counts of several processes together: what one has counted, the others know a moment later."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from ferret_api.limits import counters
from ferret_api.limits.counters import SharedCounts
from ferret_api.limits.rate_limits import RateLimitExceeded, RateLimits
from ferret_api.settings import ApiSettings
from tests.api.conftest import NO_BROKER, open_site
from tests.api.receiver import eventually
from tests.api.test_broker import server as server

pytestmark = pytest.mark.redis


@pytest.fixture
def broker(server: Any) -> str:
    return server.url


@pytest.fixture
def pair(broker: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[SharedCounts, SharedCounts]]:
    """Two processes' counts, which share when they are told to."""
    monkeypatch.setattr(counters, "SHARE_SECONDS", 600.0)
    prefix = f"test:{secrets.token_hex(8)}:"
    found = SharedCounts(broker, prefix), SharedCounts(broker, prefix)
    yield found
    for one in found:
        one.close()


def test_what_one_counts_the_other_knows(pair: tuple[SharedCounts, SharedCounts]) -> None:
    here, there = pair
    for _ in range(3):
        here.incr("key", 60)
    assert there.incr("key", 60) == 1
    here.share()
    there.share()
    assert there.get("key") == 4
    here.incr("key", 60)
    here.share()
    assert (here.get("key"), there.get("key")) == (5, 4)
    assert there.incr("key", 60) == 5
    there.share()
    assert there.get("key") == 6
    assert 50 < there.get_expiry("key") - time.monotonic() <= 60


def test_a_window_ends_for_all_at_one_moment(pair: tuple[SharedCounts, SharedCounts]) -> None:
    here, there = pair
    here.incr("key", 1)
    here.share()
    time.sleep(0.6)
    there.incr("key", 1)
    there.share()
    assert there.get("key") == 2
    time.sleep(0.6)
    assert there.get("key") == here.get("key") == 0
    assert there.incr("key", 1) == 1


def test_without_redis_a_process_counts_alone_and_adds_it_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, broker: Any
) -> None:
    monkeypatch.setattr(counters, "SHARE_SECONDS", 0.01)
    prefix = f"test:{secrets.token_hex(8)}:"
    alone = SharedCounts(NO_BROKER, prefix)
    with caplog.at_level(logging.WARNING):
        assert [alone.incr("key", 60) for _ in range(3)] == [1, 2, 3]
        eventually(lambda: caplog.records)
        time.sleep(0.1)
    alone.close()
    assert [record.message[:45] for record in caplog.records] == ["requests are counted only in this process, si"]
    alone._redis = redis.Redis.from_url(broker, protocol=2)
    alone.share()
    assert alone._redis.get(f"{prefix}key") == b"3"
    alone._redis.close()


def test_processes_share_one_limit(make_settings: Any, broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "SHARE_SECONDS", 0.01)
    settings = make_settings(broker_url=broker, participant_requests_per_minute=10)
    first, second = RateLimits(settings), RateLimits(settings)
    participant = f"par_{secrets.token_hex(8)}"
    for _ in range(10):
        first.admit_participant(participant)
    assert any(_refused(second, participant) for _ in range(9)), "alone it may ask ten times"
    first.close()
    second.close()


def _refused(limits: RateLimits, participant: str) -> bool:
    time.sleep(0.5)  # both share in between
    try:
        limits.admit_participant(participant)
    except RateLimitExceeded:
        return True
    return False


def test_an_administrator_is_counted_by_token(make_settings: Any) -> None:
    with open_site(make_settings(user_requests_per_minute=5)) as site:
        answers = [site.admin.get("/api/v1/info") for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert answers[-1].headers["RateLimit-Policy"] == '"users";q=5;w=60'


def test_without_a_broker_of_its_own_a_process_counts_in_memory() -> None:
    assert not isinstance(RateLimits(ApiSettings())._counts, SharedCounts)
