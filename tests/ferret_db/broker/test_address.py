"""Which URLs a broker may have, and what is said about the others: never a password."""

from __future__ import annotations

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_db.broker import address
from ferret_db.settings import ServiceSettings
from tests.refusals import refused

SECRET = "a-secret-password"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BROKER_URL", "BROKER_URL_FILE", "REDIS_URL", "REDIS_URL_FILE"):
        monkeypatch.delenv(f"FERRET_{name}", raising=False)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (f"carrier-pigeon://:{SECRET}@host", "not carrier-pigeon:…"),
        (f"amqp://ferret:{SECRET}@/vhost", "names no host"),
        (f"amqp://ferret:{SECRET}/x@host:5672/vhost", "in passwords write / as %2F"),
        (f"amqp://ferret:{SECRET}@a:5672/v;amqp://ferret:{SECRET}@b:5672/v", "more than one address"),
        (f"amqps://ferret:{SECRET}@a/v?ssl_cert_reqs=CERT_NONE", "with nothing behind it"),
        (f"redis://:{SECRET}@host:port/0", "its host or port is none"),
    ],
)
def test_a_url_that_no_broker_has_is_refused_without_its_password(
    url: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRET_BROKER_URL", url)
    with pytest.raises(FerretError) as caught:
        ServiceSettings.read()
    assert caught.value.code == "settings.invalid"
    assert [error.field for error in caught.value.errors] == ["FERRET_BROKER_URL"]
    assert told in caught.value.detail
    assert SECRET not in f"{caught.value.detail}{caught.value.to_json()}"


def test_redis_is_that_of_the_broker_unless_it_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("FERRET_BROKER_URL", "redis://broker/1")
    assert ServiceSettings.read().redis_url == "redis://broker/1"
    monkeypatch.setenv("FERRET_BROKER_URL", f"amqp://ferret:{SECRET}@broker/ferret")
    settings = ServiceSettings.read()
    assert settings.redis_url is None
    assert SECRET not in repr(settings)
    with refused("redis.unset", "FERRET_REDIS_URL"):
        settings.require_redis()
    (tmp_path / "redis").write_text(f"redis://:{SECRET}@redis/2\n")
    monkeypatch.setenv("FERRET_REDIS_URL_FILE", str(tmp_path / "redis"))
    assert ServiceSettings.read().require_redis() == f"redis://:{SECRET}@redis/2"
    assert SECRET not in repr(ServiceSettings.read())


def test_no_other_program_counts_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRET_REDIS_URL", f"amqp://ferret:{SECRET}@broker/ferret")
    with refused("settings.invalid", "FERRET_REDIS_URL") as caught:
        ServiceSettings.read()
    assert SECRET not in str(caught.value.to_json())


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


@pytest.mark.parametrize(
    ("url", "place", "vhost"),
    [
        ("amqp://broker", ("broker", 5672), "/"),
        ("amqps://broker/", ("broker", 5671), "/"),
        ("amqp://u:p@broker:1/fer%2Fret", ("broker", 1), "fer/ret"),
        ("amqp://broker/%2F", ("broker", 5672), "/"),
    ],
)
def test_what_a_url_of_rabbitmq_leaves_out(url: str, place: tuple[str, int], vhost: str) -> None:
    assert (address.place(url), address.vhost(url)) == (place, vhost)
