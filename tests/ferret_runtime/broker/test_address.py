"""Which URLs a broker may have, and what is said about the others: never a password."""

from __future__ import annotations

import pytest

from ferret_runtime.broker import address
from ferret_runtime.settings import ServiceSettings
from tests.refusals import refused

SECRET = "a-secret-password"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BROKER_URL", "BROKER_URL_FILE"):
        monkeypatch.delenv(f"FERRET_{name}", raising=False)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (f"carrier-pigeon://:{SECRET}@host", "not carrier-pigeon:…"),
        (f"redis://:{SECRET}/x@host:6379/0", "in passwords write / as %2F"),
        (f"redis://:{SECRET}@host:port/0", "has no valid host or port"),
    ],
)
def test_a_url_that_no_broker_has_is_refused_without_its_password(
    url: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRET_BROKER_URL", url)
    with refused("settings.invalid") as caught:
        ServiceSettings.read()
    assert [error.field for error in caught.value.errors] == ["FERRET_BROKER_URL"]
    assert told in caught.value.detail
    assert SECRET not in f"{caught.value.detail}{caught.value.to_json()}"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://:secret@host:1/2", "redis://:secret@host:1/2"),
        ("redis+socket:///run/redis.sock?virtual_host=3", "unix:///run/redis.sock?db=3"),
        ("redis+socket://:secret@/run/redis.sock", "unix://:secret@/run/redis.sock?db=0"),
    ],
)
def test_the_url_of_a_broker_is_one_of_redis(url: str, expected: str) -> None:
    assert address.for_redis_client(url) == expected
