"""The Celery application: a message is a hint with one id, JSON only, without a result backend. The database decides.

Late acknowledgement with prefetch 1 leaves a killed worker's message to others. The two ``unacked`` settings make Redis
deliver it again in seconds instead of minutes. Leases in the database decide who may work on it.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Callable
from typing import Any

from celery import Celery, current_task
from celery.signals import setup_logging, worker_ready, worker_shutdown, worker_shutting_down
from celery.worker import request

from ferret_core.protocol.errors import Exit
from ferret_core.protocol.task_names import QUEUE_OF, Queue
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


logger = logging.getLogger(__name__)


def run_worker(celery: Celery, queue: Queue, log_level: str) -> None:
    """Works on ``queue`` until a signal. The solo pool runs a task in this very process."""
    celery.worker_main(
        [
            "--quiet",  # suppresses the banner
            "worker",
            "--pool=solo",
            f"--queues={queue}",
            f"--hostname={queue}-{os.getpid()}@{socket.gethostname()}",
            f"--loglevel={log_level}",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
    )


def connect_signals(start: Callable[[], None], stop_soon: Callable[[], None], stop: Callable[[], None]) -> None:
    """Connects the callbacks to Celery's ready, shutting-down and shutdown signals.

    ``stop_soon`` runs between any two instructions of a task. It must not wait: the task may hold a lock.
    """

    def on_ready(**_: object) -> None:
        signal.signal(signal.SIGQUIT, _exit_at_once)
        start()

    def on_shutting_down(**_: object) -> None:
        stop_soon()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _exit_at_once)

    def on_shutdown(**_: object) -> None:
        stop()
        logger.info("stopped")

    def keep_our_logging(**_: object) -> None:
        """A receiver of this signal keeps Celery from setting up its logging."""

    for event, listener in {
        setup_logging: keep_our_logging,
        worker_ready: on_ready,
        worker_shutting_down: on_shutting_down,
        worker_shutdown: on_shutdown,
    }.items():
        event.connect(listener, weak=False)


def _exit_at_once(*_: object) -> None:
    """Exits on the second signal. The others find the unfinished work, as after a crash."""
    os._exit(Exit.FAILURE)
