"""The one Celery wrapper: builds the process's context, registers the tasks by their names, runs one worker."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable

import torch
from celery import Celery
from celery.signals import worker_ready, worker_shutting_down

from ferret_core.protocol.tasks import QUEUE_OF, Queue, TaskName
from ferret_core.storage import open_storage
from ferret_db.database import Database, Dispatch
from ferret_db.tables import OutboxMessage
from worker.aggregate import aggregate
from worker.celery import create_celery
from worker.context import Context
from worker.coordinate import coordinate
from worker.evaluate import evaluate
from worker.reconcile import Reconciler, reconcile
from worker.settings import WorkerSettings
from worker.train import train

TASKS: dict[TaskName, Callable[[Context, str], None]] = {
    TaskName.COORDINATE: coordinate,
    TaskName.TRAIN: train,
    TaskName.AGGREGATE: aggregate,
    TaskName.EVALUATE: evaluate,
    TaskName.RECONCILE: reconcile,
}
"""What each message calls, with the one id that it carries."""


def work(settings: WorkerSettings, queue: Queue) -> None:
    """Runs one worker process on ``queue`` until it is told to stop.

    The solo pool runs a task in this very process: CUDA does not survive a fork, and the model stays in memory.
    """
    logging.getLogger("absl").setLevel(logging.WARNING)  # rouge-score names its tokenizer on every evaluation
    if settings.threads:
        torch.set_num_threads(settings.threads)
    celery = create_celery(settings)
    context = Context(settings, Database(settings.database_url, dispatcher(celery)), open_storage(settings.storage_url))
    register(celery, context)
    _reconcile_while_running(context)
    celery.worker_main(
        [
            "worker",
            "--pool=solo",
            f"--queues={queue}",
            f"--hostname={queue}-{os.getpid()}@{socket.gethostname()}",
            f"--loglevel={settings.log_level}",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
    )


def _reconcile_while_running(context: Context) -> None:
    reconciler = Reconciler(context)

    def start(**_: object) -> None:
        reconciler.start()

    def stop(**_: object) -> None:
        reconciler.stop()

    worker_ready.connect(start, weak=False)
    worker_shutting_down.connect(stop, weak=False)


def register(celery: Celery, context: Context) -> None:
    """Makes the tasks known to ``celery`` by their names."""
    for name, run in TASKS.items():
        celery.task(_bound(run, context), name=str(name))


def _bound(run: Callable[[Context, str], None], context: Context) -> Callable[[str], None]:
    def task(subject: str) -> None:
        run(context, subject)

    return task


def dispatcher(celery: Celery) -> Dispatch:
    """Sends outbox messages by task name; called by the database strictly after a commit."""

    def send(messages: list[OutboxMessage]) -> None:
        for message in messages:
            celery.send_task(str(message.task), args=[message.argument], queue=str(QUEUE_OF[message.task]))

    return send
