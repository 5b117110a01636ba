"""Hands tasks to the workers by name, after the commit that asks for them. Never imports the worker.

A message is a hint: if the broker is down, the row stays unsent and the reconciler hands it out later. So a request
waits for the broker a second or two at most and never fails because of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from celery import Celery
from kombu.exceptions import ChannelError, OperationalError

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.tasks import QUEUE_OF, Queue, TaskName
from ferret_db import tracing
from ferret_db.tables import OutboxMessage

_TIMEOUT_SECONDS = 2
_SCHEMES = {"redis", "rediss", "redis+socket"}


class Broker:
    """A Celery producer: JSON only, no results, no retries. ``settings.invalid`` for anything but Redis."""

    def __init__(self, url: str) -> None:
        scheme = url.partition(":")[0]
        if scheme not in _SCHEMES:
            raise FerretError.of_field(
                "settings.invalid", "FERRET_BROKER_URL", f"{scheme}:…", "use redis://user:password@host:port/number"
            )
        self._celery = Celery("ferret-api", broker=url, set_as_current=False)
        self._celery.conf.update(
            task_serializer="json",
            task_ignore_result=True,
            broker_connection_timeout=_TIMEOUT_SECONDS,
            broker_transport_options={
                "socket_timeout": _TIMEOUT_SECONDS,
                "socket_connect_timeout": _TIMEOUT_SECONDS,
                "max_retries": 1,
                "interval_start": 0,
            },
        )

    def send(self, messages: Sequence[OutboxMessage]) -> None:
        """Sends each task with its id; raises ``kombu.exceptions.OperationalError`` when the broker is down."""
        for message in messages:
            self._send(TaskName(message.task), message.argument)

    def send_question(self, question_id: str) -> None:
        """Calls a worker of the playground; raises as :meth:`send`."""
        self._send(TaskName.ANSWER, question_id)

    def _send(self, task: TaskName, argument: str) -> None:
        queue, headers = str(QUEUE_OF[task]), tracing.headers()
        self._celery.send_task(str(task), args=[argument], queue=queue, headers=headers, retry=False)

    def check(self) -> None:
        """Raises ``server.not_ready`` unless the broker answers."""
        try:
            with self._celery.connection_for_write() as connection:
                connection.ensure_connection(max_retries=1, interval_start=0, timeout=_TIMEOUT_SECONDS)
        except (OperationalError, OSError) as error:
            raise FerretError("server.not_ready", f"the broker does not answer ({error}); start Redis") from error

    def lengths(self) -> dict[Queue, int] | None:
        """How many messages are in each queue, in no worker's hands; None where the broker does not answer."""
        with self._celery.connection_for_write() as connection:
            try:
                connection.ensure_connection(max_retries=1, interval_start=0, timeout=_TIMEOUT_SECONDS)
                return {queue: _length(connection.default_channel, queue) for queue in Queue}
            except (OperationalError, *connection.connection_errors):
                return None

    def close(self) -> None:
        self._celery.close()


def _length(channel: Any, queue: Queue) -> int:
    try:
        return channel.queue_declare(str(queue), passive=True).message_count
    except ChannelError:  # an empty queue does not exist
        return 0
