"""RabbitMQ, if it is the broker: whether all can be done with it that the service does."""

from __future__ import annotations

from typing import Any

from ferret_cli.doctor.check import Check
from ferret_core.protocol.tasks import Queue
from ferret_db.broker import address, rabbitmq
from ferret_db.broker.celery import ARGUMENTS, UNACKNOWLEDGED_MS
from ferret_db.broker.fault import fault

PATIENT = (3, 12)
"""From this version on a queue can say how long a task may take."""


def check(url: str) -> Check:
    """Signs in at ``url`` and declares the queues as the service does."""
    try:
        with rabbitmq.connected(url) as connection:
            _declare(connection)
            version = rabbitmq.version(connection)
    except rabbitmq.ERRORS as error:
        found = fault(url, error)
        return Check("broker", False, found.reason, found.step)
    host, port = address.place(url)
    answers = f"RabbitMQ {'.'.join(map(str, version))} at {host}:{port} answers"
    if version < PATIENT:
        hands_on = "it hands a task's message to a second worker after consumer_timeout, 30 minutes unless it is set"
        fix = f"consumer_timeout = {UNACKNOWLEDGED_MS} in its rabbitmq.conf, or RabbitMQ {'.'.join(map(str, PATIENT))}"
        return Check("broker", None, f"{answers}; {hands_on}", fix)
    return Check("broker", True, answers)


def _declare(connection: Any) -> None:
    channel = connection.channel()
    for queue in Queue:
        channel.queue_declare(str(queue), durable=True, auto_delete=False, arguments=ARGUMENTS)
    channel.close()
