"""What ``ferret doctor`` says about a RabbitMQ: each thing that can be wrong, with the command that helps."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from ferret_cli.doctor import installation
from ferret_cli.doctor import rabbitmq as doctor
from ferret_cli.doctor.check import Check
from ferret_core.protocol.tasks import Queue
from ferret_db.broker import address
from ferret_db.broker.rabbitmq import connected
from ferret_db.settings import ServiceSettings
from tests.rabbitmq_server import Server

pytestmark = pytest.mark.rabbitmq


@pytest.fixture
def stranger(rabbitmq_server_here: Server) -> Iterator[str]:
    """The name of a user who may use no vhost, and whose password it is too."""
    name = f"ferret-{secrets.token_hex(4)}"
    rabbitmq_server_here.act("add_user", name, name)
    yield name
    rabbitmq_server_here.act("delete_user", name)


def wrong(url: str) -> Check:
    found = doctor.check(url)
    assert found.ok is False, found
    assert found.fix
    assert "FERRET_BROKER_URL" in found.detail
    return found


def test_a_good_one_has_the_services_queues(rabbitmq: str) -> None:
    found = doctor.check(rabbitmq)
    assert found.ok is not False, found
    assert "answers" in found.detail
    with connected(rabbitmq) as connection:
        for queue in Queue:
            assert connection.channel().queue_declare(queue, passive=True).queue == queue


@pytest.mark.parametrize(("version", "ok"), [("3.10.8", None), ("3.12.0", True), ("4.3.0-rc.1", True)])
def test_one_that_gives_tasks_half_an_hour_is_told_what_to_set(
    version: str, ok: bool | None, rabbitmq: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = tuple(int(part) for part in version.partition("-")[0].split("."))
    monkeypatch.setattr(doctor.rabbitmq, "version", lambda connection: numbers)
    found = doctor.check(rabbitmq)
    assert found.ok is ok
    assert ("consumer_timeout = 1209600000" in (found.fix or "")) is (ok is None)


def test_a_wrong_password_is_told_from_a_wrong_vhost(rabbitmq_server_here: Server, rabbitmq_vhost: str) -> None:
    name = address.vhost(rabbitmq_vhost)
    found = wrong(rabbitmq_server_here.url(name, password="a-secret-password"))
    assert "does not know user 'guest' with this password" in found.detail
    assert "a-secret" not in f"{found}"
    found = wrong(rabbitmq_server_here.url("ferret-absent"))
    assert "has no vhost 'ferret-absent'" in found.detail
    assert found.fix == "rabbitmqctl add_vhost ferret-absent"


def test_a_user_without_permission_is_told_the_command(
    rabbitmq_server_here: Server, rabbitmq_vhost: str, stranger: str
) -> None:
    name = address.vhost(rabbitmq_vhost)
    url = rabbitmq_server_here.url(name, stranger, stranger)
    allow = f"rabbitmqctl set_permissions -p {name} {stranger} '.*' '.*' '.*'"
    found = wrong(url)
    assert f"keeps user '{stranger}' out of vhost '{name}'" in found.detail
    assert found.fix == allow
    rabbitmq_server_here.act("set_permissions", "-p", name, stranger, "", "", "")
    found = wrong(url)
    assert f"does not let user '{stranger}' use the queues" in found.detail
    assert found.fix == allow


def test_a_queue_of_somebody_else_is_named(rabbitmq: str) -> None:
    with connected(rabbitmq) as connection:
        connection.channel().queue_declare("train", durable=True, auto_delete=False)
    found = wrong(rabbitmq)
    assert "'train'" in found.detail
    assert "vhost of its own" in (found.fix or "")


def test_a_connection_that_is_refused(free_port: int) -> None:
    found = wrong(f"amqp://guest:guest@127.0.0.1:{free_port}/ferret")
    assert f"127.0.0.1:{free_port}" in found.detail
    assert "start RabbitMQ" in (found.fix or "")


def test_the_redis_beside_it_is_looked_at_too(free_port: int) -> None:
    def settings(redis_url: str | None) -> ServiceSettings:
        return ServiceSettings(broker_url="amqp://broker/ferret", redis_url=redis_url)

    (unset,) = installation.redis(settings(None))
    assert (unset.ok, "FERRET_REDIS_URL is not set" in unset.detail) == (None, True)
    (away,) = installation.redis(settings(f"redis://127.0.0.1:{free_port}/0"))
    assert (away.ok, f"127.0.0.1:{free_port}" in away.detail) == (False, True)
    assert installation.redis(ServiceSettings(broker_url="redis://broker/0")) == []


def test_the_command_says_it(ferret: Any, free_port: int, rabbitmq: str) -> None:
    done = ferret("doctor", "--json", FERRET_PORT=str(free_port), FERRET_BROKER_URL=rabbitmq)
    assert done.returncode == 0, done.stdout
    found = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert "RabbitMQ" in found["broker"]["detail"]
    assert found["redis"]["ok"] is None
