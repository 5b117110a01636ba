"""One worker process under Celery, from its first heartbeat to its end."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Callable

from celery import Celery
from celery.signals import setup_logging, worker_ready, worker_shutdown, worker_shutting_down

from ferret_core.protocol.errors import Exit
from ferret_core.protocol.task_names import Queue

logger = logging.getLogger(__name__)


def run(celery: Celery, queue: Queue, log_level: str) -> None:
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


def attend(start: Callable[[], None], stop_soon: Callable[[], None], stop: Callable[[], None]) -> None:
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
