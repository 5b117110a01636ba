"""The Celery application: a message is a hint with one id, JSON only, without a result backend. The database decides.

Late acknowledgement with prefetch 1 leaves a killed worker's message to others. The two ``unacked`` settings make Redis
deliver it again in seconds instead of minutes. Leases in the database decide who may work on it.
"""

from __future__ import annotations

from typing import Any

from celery import Celery, current_task
from celery.worker import request

from ferret_core.protocol.task_names import QUEUE_OF
from ferret_worker.settings import WorkerSettings

SOCKET_SECONDS = 30
"""Seconds for the broker to answer before the connection is renewed."""


def create_celery(settings: WorkerSettings) -> Celery:
    """Creates the application on ``settings.broker_url`` with every setting that Ferret relies on."""
    app = Celery("ferret", broker=settings.broker_url)
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_routes={str(name): {"queue": str(queue)} for name, queue in QUEUE_OF.items()},
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        # A solo worker notices a lost connection between two tasks, so this cancels none. Celery warns if it is unset.
        worker_cancel_long_running_tasks_on_connection_loss=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # continues after any outage
        broker_transport_options={
            "visibility_timeout": settings.task_limit_seconds + 60,
            "unacked_restore_interval": 2,
            "unacked_restore_throttle": 1,
            "socket_timeout": SOCKET_SECONDS,
            "health_check_interval": 15,
            "socket_keepalive": True,
        },
    )
    return app


def message_headers() -> dict[str, str]:
    """Returns the sender's headers of the running task's message, without Celery's."""
    running: Any = current_task
    return running.request.headers or {}


class Request(request.Request):
    """A received message with an acknowledgement that can fail.

    When a connection is lost at this moment, Celery only logs it. It then believes permanently that the message is
    being worked on, and with prefetch 1 takes no other. Raising the error makes it reconnect.
    """

    def __init__(self, message: Any, **options: Any) -> None:
        options["connection_errors"] = ()
        super().__init__(message, **options)
