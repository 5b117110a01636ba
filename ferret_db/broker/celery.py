"""What Celery is told about the broker, alike in the API and in the workers."""

from __future__ import annotations

from typing import Any

from kombu.entity import Exchange
from kombu.entity import Queue as Declared

from ferret_core.protocol.tasks import Queue
from ferret_db.broker import address

UNACKNOWLEDGED_MS = 14 * 24 * 3600 * 1000
"""How long RabbitMQ leaves a message to a worker that has not ended its task: two weeks. It is one number everywhere,
because a queue cannot be declared with two. The worker's own limit, ``FERRET_TASK_LIMIT_SECONDS``, comes first."""
ARGUMENTS = {"x-queue-type": "quorum", "x-consumer-timeout": UNACKNOWLEDGED_MS}
ONCE_MORE = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}
"""That a connection was lost is noticed by the next message, which is sent again at once."""


def settings(url: str, timeout_seconds: float) -> dict[str, Any]:
    """For ``conf.update``; nothing where the broker is Redis. ``timeout_seconds`` bounds each read and each write."""
    if not address.is_amqp(url):
        return {}
    # Without the host's name the certificate may be anybody's.
    tls = {"broker_use_ssl": {"server_hostname": address.place(url)[0]}} if url.startswith("amqps:") else {}
    return {
        **tls,
        "task_queues": [queue(name) for name in Queue],
        "task_create_missing_queues": False,
        "task_publish_retry": True,
        "task_publish_retry_policy": ONCE_MORE,
        # A worker says nothing while a task runs, and a sender nothing between two messages: TCP's keepalive finds
        # the dead.
        "broker_heartbeat": 0,
        "broker_channel_error_retry": True,
        "broker_transport_options": {
            "confirm_publish": True,
            "read_timeout": timeout_seconds,
            "write_timeout": timeout_seconds,
        },
    }


def queue(name: Queue) -> Declared:
    """Durable and replicated; its messages come by the default exchange, which every RabbitMQ has."""
    return Declared(str(name), Exchange(""), routing_key=str(name), durable=True, queue_arguments=ARGUMENTS)
