"""Sends tasks to the workers by name."""

from __future__ import annotations

from celery import Celery
from kombu.exceptions import OperationalError
from kombu.messaging import Producer

from ferret_core.protocol.task_names import QUEUE_OF, TaskName
from ferret_runtime import tracing


class Sender:
    """A thread-safe sender. A message counts as sent once the broker confirms it."""

    def __init__(self, celery: Celery) -> None:
        self._celery = celery

    def send(self, name: TaskName, argument: str) -> None:
        """Sends a task. Raises ``kombu.exceptions.OperationalError`` if the broker did not take the message."""
        with self._celery.producer_pool.acquire(block=True) as producer:
            try:
                self._publish(producer, name, argument)
            except Exception as error:
                # A late response on this connection would be taken for the next message's.
                producer.connection.collect()
                raise OperationalError(f"the broker did not take a message: {error}") from error

    def _publish(self, producer: Producer, name: TaskName, argument: str) -> None:
        queue, headers = str(QUEUE_OF[name]), tracing.headers()
        self._celery.send_task(str(name), args=[argument], queue=queue, headers=headers, producer=producer)
