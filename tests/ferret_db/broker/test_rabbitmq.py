"""Messages to a real RabbitMQ: kept, counted, and never taken for sent when they are not."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme
from celery import Celery
from kombu.exceptions import OperationalError

from ferret_core.protocol.tasks import Queue, TaskName
from ferret_db.broker import address
from ferret_db.broker.celery import UNACKNOWLEDGED_MS, settings
from ferret_db.broker.fault import fault
from ferret_db.broker.lengths import Lengths, lengths
from ferret_db.broker.rabbitmq import connected
from ferret_db.broker.sender import Sender
from tests.line import Line

pytestmark = pytest.mark.rabbitmq
TIMEOUT_SECONDS = 2.0
PATIENCE_SECONDS = 5 * TIMEOUT_SECONDS
EMPTY = dict.fromkeys(Queue, 0)


class Sending:
    """What a process of the service has of the broker."""

    def __init__(self, url: str) -> None:
        self.celery = Celery("test", broker=url, set_as_current=False)
        self.celery.conf.update(broker_connection_timeout=TIMEOUT_SECONDS, **settings(url, TIMEOUT_SECONDS))
        self.sender = Sender(self.celery)
        self.lengths: Lengths = lengths(url)

    def send(self, number: int) -> None:
        self.sender.send(TaskName.TRAIN, f"asg_{number}")

    def close(self) -> None:
        self.lengths.close()
        self.celery.close()


@pytest.fixture
def line(rabbitmq: str) -> Iterator[Line]:
    with Line(address.place(rabbitmq)) as line:
        yield line


@pytest.fixture
def sending(rabbitmq: str, line: Line) -> Iterator[Sending]:
    """By way of the line."""
    sending = Sending(rabbitmq.replace(str(address.place(rabbitmq)[1]), str(line.port)))
    yield sending
    sending.close()


@pytest.fixture
def direct(rabbitmq: str) -> Iterator[Lengths]:
    found = lengths(rabbitmq)
    yield found
    found.close()


def test_messages_are_counted_and_outlive_their_connection(sending: Sending, line: Line, direct: Lengths) -> None:
    assert sending.lengths.read() == EMPTY, "before anybody has declared a queue"
    for number in range(3):
        sending.send(number)
    line.cut()
    assert sending.lengths.read() == direct.read() == EMPTY | {Queue.TRAIN: 3}


def test_a_message_is_durable_and_its_queue_patient(sending: Sending, rabbitmq: str) -> None:
    sending.send(1)
    with connected(rabbitmq) as connection:
        channel = connection.channel()
        message = channel.basic_get("train")
        assert message.properties["delivery_mode"] == 2
        # Declared again with the same arguments it is the same; with others it is refused.
        same = {"x-queue-type": "quorum", "x-consumer-timeout": UNACKNOWLEDGED_MS}
        channel.queue_declare("train", durable=True, auto_delete=False, arguments=same)
        channel.close()


def test_a_connection_that_was_cut_is_noticed_by_the_next_message(
    sending: Sending, line: Line, direct: Lengths
) -> None:
    sending.send(1)
    line.cut()
    sending.send(2)
    assert direct.read()[Queue.TRAIN] == 2


def test_a_broker_that_hangs_is_given_up_soon_and_used_again(sending: Sending, line: Line, direct: Lengths) -> None:
    sending.send(1)
    line.hang()
    begun = time.monotonic()
    with pytest.raises(OperationalError):
        sending.send(2)
    with pytest.raises(ConnectionError):
        sending.lengths.read()
    assert time.monotonic() - begun < 2 * PATIENCE_SECONDS
    line.cut()
    line.resume()
    sending.send(3)
    assert sending.lengths.read() == direct.read()
    assert direct.read()[Queue.TRAIN] in {2, 3}, "what was not confirmed may have arrived"


def test_a_late_confirmation_is_not_that_of_the_next_message(sending: Sending, line: Line, direct: Lengths) -> None:
    sending.send(1)
    line.hang()
    with pytest.raises(OperationalError):
        sending.send(2)
    line.resume()
    for number in range(3, 6):
        sending.send(number)
    assert direct.read()[Queue.TRAIN] >= 4


def test_a_queue_that_somebody_deleted_is_declared_again(sending: Sending, rabbitmq: str, direct: Lengths) -> None:
    sending.send(1)
    with connected(rabbitmq) as connection:
        connection.channel().queue_delete("train")
    sending.send(2)
    assert direct.read()[Queue.TRAIN] == 1


def test_a_queue_of_somebody_else_is_an_error(sending: Sending, rabbitmq: str) -> None:
    with connected(rabbitmq) as connection:
        connection.channel().queue_declare("train", durable=True, auto_delete=False)
    with pytest.raises(OperationalError) as caught:
        sending.send(1)
    found = fault(rabbitmq, caught.value)
    assert "a queue of somebody else" in found.reason
    assert "vhost of its own" in found.step


def test_a_password_is_in_no_message(rabbitmq: str) -> None:
    host, port = address.place(rabbitmq)
    url = f"amqp://guest:a-secret-password@{host}:{port}/{urlsplit(rabbitmq).path[1:]}"
    sending = Sending(url)
    with pytest.raises(OperationalError) as caught:
        sending.send(1)
    assert "a-secret" not in f"{caught.value}{fault(url, caught.value)}"
    sending.close()


@pytest.mark.parametrize(("name", "trusted"), [("127.0.0.1", True), ("broker.example.org", False)])
def test_by_tls_the_certificate_must_be_the_hosts(
    name: str, trusted: bool, rabbitmq: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    with Line(address.place(rabbitmq), context) as line:
        sending = Sending(f"amqps://guest:guest@127.0.0.1:{line.port}/{address.vhost(rabbitmq)}")
        if trusted:
            sending.send(1)
            assert sending.lengths.read()[Queue.TRAIN] == 1
        else:
            with pytest.raises(OperationalError, match="certificate"):
                sending.send(1)
            with pytest.raises(ConnectionError, match="certificate"):
                sending.lengths.read()
        sending.close()
