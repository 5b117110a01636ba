"""Sender of tasks to the workers by name, after the commit that queues them. It never imports the worker.

If the broker is down, the row stays unsent and the reconciler sends it later. A request therefore waits for the broker
a few seconds at most, and never fails because of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from celery import Celery

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db.tables import OutboxMessage
from ferret_runtime.broker.redis_client import Lengths
from ferret_runtime.broker.sender import Sender

_TIMEOUT_SECONDS = 2


class Broker:
    """A Celery producer with JSON messages and without results."""

    def __init__(self, url: str) -> None:
        self._celery = Celery("ferret-api", broker=url, set_as_current=False)
        self._celery.conf.update(
            task_serializer="json",
            task_ignore_result=True,
            task_publish_retry=False,
            broker_connection_timeout=_TIMEOUT_SECONDS,
            broker_transport_options={
                "socket_timeout": _TIMEOUT_SECONDS,
                "socket_connect_timeout": _TIMEOUT_SECONDS,
                "max_retries": 1,
                "interval_start": 0,
            },
        )
        self._sender = Sender(self._celery)
        self._lengths = Lengths(url)

    def send(self, messages: Sequence[OutboxMessage]) -> None:
        """Sends each task with its id. Raises ``kombu.exceptions.OperationalError`` if the broker is down."""
        for message in messages:
            self._sender.send(TaskName(message.task), message.argument)

    def send_question(self, question_id: str) -> None:
        """Sends a question to a playground worker. Raises the errors of :meth:`send`."""
        self._sender.send(TaskName.ANSWER, question_id)

    def check(self) -> None:
        """Raises ``server.not_ready`` if the broker does not respond."""
        try:
            self._lengths.read()
        except ConnectionError as error:
            raise FerretError("server.not_ready", f"{error}; start Redis at FERRET_BROKER_URL") from error

    def lengths(self) -> dict[Queue, int] | None:
        """Returns the number of waiting messages in each queue; None if the broker does not respond."""
        try:
            return self._lengths.read()
        except ConnectionError:
            return None

    def close(self) -> None:
        self._lengths.close()
        self._celery.close()
