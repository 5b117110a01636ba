"""Floods are counted: by address for strangers, by participant for those who are known; nobody else has to wait."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from sqlalchemy import event
from starlette.testclient import TestClient

from ferret_api.client_network import network
from ferret_api.limits.counters import Counts
from ferret_api.limits.rate_limits import RateLimitExceeded, RateLimits
from ferret_api.system.readiness import TtlCache
from tests.api.conftest import bearer, open_site

READY = "/readyz"
INFO = "/api/v1/info"


@pytest.fixture
def strict(make_settings: Any) -> Any:
    """At most 20 requests of strangers, 5 failures and 30 requests of a participant."""
    limits = {"stranger_requests_per_minute": 20, "failures_per_minute": 5, "participant_requests_per_minute": 30}
    with open_site(make_settings(**limits)) as site:
        yield site


def at(site: Any, address: str, token: str | None = None) -> TestClient:
    return TestClient(site.app, client=(address, 5000), headers=bearer(token) if token else {})


def codes(client: TestClient, path: str, count: int) -> list[int]:
    return [client.get(path).status_code for _ in range(count)]


def test_a_flood_of_strangers_is_told_to_wait(strict: Any) -> None:
    flood = at(strict, "192.0.2.1")
    assert codes(flood, "/healthz", 25) == [200] * 20 + [429] * 5
    answer = flood.get("/healthz")
    assert answer.json()["code"] == "request.too_many"
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    wait = answer.headers["Retry-After"]
    assert answer.headers["RateLimit-Policy"] == '"strangers";q=20;w=60'
    assert answer.headers["RateLimit"] == f'"strangers";r=0;t={wait}'
    assert len(answer.content) < 1_000
    assert at(strict, "192.0.2.2").get("/healthz").status_code == 200


def test_guessing_participants_tokens_ends_after_few_tries(strict: Any) -> None:
    """test_sign_in_floods.py guesses at all else."""
    assert codes(at(strict, "192.0.2.3", "y" * 43), INFO, 8) == [401] * 5 + [429] * 3


def test_a_page_without_a_session_is_no_guess(strict: Any) -> None:
    assert codes(at(strict, "192.0.2.4"), INFO, 12) == [401] * 12


def test_those_who_are_known_do_not_suffer_from_others_at_their_address(strict: Any) -> None:
    experiment_id = strict.running(participants={"edge": 1})
    address = "198.51.100.1"
    participant = at(strict, address, strict.enrol(experiment_id))
    admin = at(strict, address, strict.context.admin.value)
    browser = strict.browser()
    for client, path in ((participant, "/api/v1/participant/assignment"), (admin, INFO), (browser, INFO)):
        assert client.get(path).status_code == 200
    assert codes(at(strict, address, "z" * 43), INFO, 8)[-1] == 429
    assert codes(at(strict, "testclient"), READY, 21)[-1] == 429
    assert codes(participant, "/api/v1/participant/assignment", 10) == [200] * 10
    assert codes(admin, INFO, 60) == [200] * 60
    assert codes(browser, INFO, 60) == [200] * 60


def test_a_participant_is_counted_wherever_it_calls_from(strict: Any) -> None:
    token = strict.enrol(strict.running(participants={"edge": 1}))
    path = "/api/v1/participant/assignment"
    found = codes(at(strict, "192.0.2.5", token), path, 20) + codes(at(strict, "192.0.2.6", token), path, 20)
    assert found == [200] * 30 + [429] * 10


def test_a_thousand_participants_behind_one_address_are_served(make_settings: Any) -> None:
    """With the defaults: each joins, and asks for work ten times within the same minute."""
    limits = RateLimits(make_settings())
    for number in range(1_000):
        limits.admit_stranger("203.0.113.1")  # its code becomes a token
        limits.admit_stranger("203.0.113.1")  # the token is shown for the first time
        limits.recognise(f"token {number}")
        for _ in range(10):
            assert limits.recognises(f"token {number}")
            limits.admit_participant(f"par_{number}")
    for _ in range(4_000):
        limits.admit_stranger("203.0.113.1")
    with pytest.raises(RateLimitExceeded):
        limits.admit_stranger("203.0.113.1")


def test_a_token_that_is_good_no_more_is_forgotten(strict: Any) -> None:
    browser = strict.browser()
    assert browser.get(INFO).status_code == 200
    value = browser.cookies[strict.context.admin.cookie]
    assert strict.context.limits.recognises(value)
    browser.delete("/api/v1/session").raise_for_status()
    assert not strict.context.limits.recognises(value)


def test_a_wrong_code_takes_no_write_lock(site: Any) -> None:
    """Of failed sign-ins the audit log tells once a minute for each address; the others take none either."""
    began: list[str] = []
    site.client().post("/api/v1/session", json={"token": "guess"})

    def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        began.append(statement)

    engine = site.database._engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        site.client().post("/api/v1/participants", json={"code": "guess", "display_name": "a"})
        site.client("guess").get("/api/v1/participant/assignment")
        site.client().post("/api/v1/session", json={"token": "guess"})
    finally:
        event.remove(engine, "before_cursor_execute", note)
    assert not any("IMMEDIATE" in statement or statement.startswith(("UPDATE", "INSERT")) for statement in began)


def test_readiness_is_looked_at_once_for_many_who_ask() -> None:
    looks, entered, go = [0], threading.Event(), threading.Event()

    def look() -> int:
        looks[0] += 1
        entered.set()
        assert go.wait(20)
        return looks[0]

    async def ask() -> list[int]:
        recent = TtlCache(look, 3_600)
        asked = [asyncio.create_task(recent.get()) for _ in range(100)]
        await asyncio.to_thread(entered.wait, 20)
        go.set()
        return [*await asyncio.gather(*asked), await recent.get()]

    assert asyncio.run(ask()) == [1] * 101


def test_addresses_of_one_customer_are_one_place() -> None:
    assert network("2001:db8:1:2::1") == network("2001:db8:1:2:ffff::9") != network("2001:db8:1:3::1")
    assert network("::ffff:192.0.2.1") == network("192.0.2.1") != network("192.0.2.2")
    assert network("fe80::1%eth0") == network("fe80::2")
    assert network("testclient") == "testclient"


def test_counts_that_are_over_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("ferret_api.limits.rate_limits.time.monotonic", lambda: clock[0])
    counts = Counts()
    for key in range(5_000):
        clock[0] += 1
        counts.incr(str(key), 60)
    assert len(counts._found) <= 2 * Counts.FEWEST
    assert counts.incr("4999", 60) == 2
    clock[0] += 61
    assert counts.get("4999") == 0
    assert counts.incr("4999", 60) == 1
