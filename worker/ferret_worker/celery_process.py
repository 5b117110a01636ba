"""One worker process under Celery, from its first sign of life to its end."""

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
            "--quiet",  # no banner
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
    """Has these called when the worker is ready, when it is told to end, and after its last task.

    ``stop_soon`` runs between any two instructions of a task. It must wait for nothing: the task may hold what others
    want.
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
        """That somebody listens keeps Celery from setting up its own."""

    for event, listener in {
        setup_logging: keep_our_logging,
        worker_ready: on_ready,
        worker_shutting_down: on_shutting_down,
        worker_shutdown: on_shutdown,
    }.items():
        event.connect(listener, weak=False)


def _exit_at_once(*_: object) -> None:
    """On the second signal: what is left undone is found by the others, as after a crash."""
    os._exit(Exit.FAILURE)
