"""Hands tasks to the workers by name."""

from __future__ import annotations

from typing import Any

import amqp
from celery import Celery
from kombu.exceptions import OperationalError
from kombu.messaging import Producer

from ferret_core.protocol.tasks import QUEUE_OF, TaskName
from ferret_db import tracing


class Sender:
    """For any thread. A message is sent once the broker says that it has it."""

    def __init__(self, celery: Celery) -> None:
        self._celery = celery

    def send(self, name: TaskName, argument: str) -> None:
        """Raises ``kombu.exceptions.OperationalError`` where the broker did not take the message."""
        with self._celery.producer_pool.acquire(block=True) as producer:
            try:
                self._send(producer, name, argument)
            except Exception as error:
                # A late answer on this connection would be taken for that to the next message.
                _collect(producer)
                raise OperationalError(f"the broker did not take a message: {error}") from error

    def _send(self, producer: Producer, name: TaskName, argument: str) -> None:
        try:
            self._publish(producer, name, argument)
        except amqp.ChannelError:  # the queue was deleted: a new connection declares it again
            producer.revive(_collect(producer))
            self._publish(producer, name, argument)

    def _publish(self, producer: Producer, name: TaskName, argument: str) -> None:
        """``mandatory``: it is an error that no queue takes the message."""
        queue, headers = str(QUEUE_OF[name]), tracing.headers()
        self._celery.send_task(
            str(name), args=[argument], queue=queue, headers=headers, producer=producer, mandatory=True
        )


def _collect(producer: Any) -> Any:
    """Throws its open connection away; returns what makes another."""
    producer.connection.collect()
    return producer.connection
