"""The Celery application's tasks, and one worker process from its first heartbeat to its end."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from celery import Celery
from celery.exceptions import Reject, WorkerShutdown

from ferret_core.distributed.process_group import ProcessGroup, started
from ferret_core.protocol.errors import Exit
from ferret_core.protocol.task_names import Queue, TaskName
from ferret_core.system import memory_limit
from ferret_core.system.device import chosen_device, fast_bfloat16
from ferret_db.database import Database, Dispatch
from ferret_db.engine import installation
from ferret_db.tables import OutboxMessage
from ferret_runtime import tracing
from ferret_runtime.broker.sender import Sender
from ferret_worker.celery import Request, connect_signals, create_celery, message_headers, run_worker
from ferret_worker.reconcile import Reconciler, reconcile
from ferret_worker.settings import WorkerSettings
from ferret_worker.task_runner import TASKS, perform
from ferret_worker.team_follower import follow
from ferret_worker.watchdog import Watchdog
from ferret_worker.worker_heartbeat import WorkerHeartbeat, identity
from ferret_worker.worker_state import WorkerState


def work(settings: WorkerSettings, queue: Queue, team: ProcessGroup | None = None) -> None:
    """Runs one worker process on ``queue`` until it is stopped; with a ``team``, as its first process.

    The solo pool runs a task in this very process: CUDA does not survive a fork, and the model stays in memory.
    """
    if settings.threads:
        torch.set_num_threads(settings.threads)
    celery = create_celery(settings)
    database = Database(settings.database_url, dispatcher(celery), settings.running_experiments)
    context = WorkerState(settings, database, settings.open_storage(), team)
    installation.claim(database, context.storage)
    who = identity(queue, context.device.type, bfloat16=fast_bfloat16(context.device))
    presence = WorkerHeartbeat(context.database, who, settings.gone_seconds / 3)
    watchdog = Watchdog(context, presence)
    register(celery, context, presence, watchdog)
    _attend(context, presence, watchdog)
    if context.device.type == "cpu":
        memory_limit.limit(settings.memory_limit)
    try:
        run_worker(celery, queue, settings.log_level)
    finally:
        if context.announcer is not None:
            context.announcer.end()
    if context.device_lost or context.team_lost:
        sys.exit(Exit.FAILURE)  # Celery does not report its failure


def _attend(context: WorkerState, presence: WorkerHeartbeat, watchdog: Watchdog) -> None:
    reconciler = Reconciler(context, presence.who.id)

    def start() -> None:
        presence.say()
        presence.start()
        watchdog.start()
        reconciler.start()

    def stop_soon() -> None:
        context.stopping = True

    def stop() -> None:
        reconciler.stop()
        presence.stop()

    connect_signals(start, stop_soon, stop)


def register(celery: Celery, context: WorkerState, presence: WorkerHeartbeat, watchdog: Watchdog) -> None:
    """Registers the tasks in ``celery`` by their names."""
    for name in TASKS:
        celery.task(_bound(context, presence, watchdog, name), name=str(name), Request=Request)

    def sweep(subject: str) -> None:
        reconcile(context)

    celery.task(sweep, name=str(TaskName.RECONCILE), Request=Request)


def _bound(
    context: WorkerState, presence: WorkerHeartbeat, watchdog: Watchdog, name: TaskName
) -> Callable[[str], None]:
    def task(subject: str) -> None:
        if context.stopping:
            raise Reject("this worker is stopping", requeue=True)
        with tracing.received(message_headers()):
            perform(context, presence, name, subject, watchdog)
        if context.device_lost or context.team_lost:
            # Every other task would fail here too and be blamed for it. A supervisor starts a new process.
            raise WorkerShutdown

    return task


def dispatcher(celery: Celery) -> Dispatch:
    """Sends outbox messages by task name. The database calls it strictly after a commit."""
    sender = Sender(celery)

    def send(messages: list[OutboxMessage]) -> None:
        for message in messages:
            sender.send(message.task, message.argument)

    return send


def start(settings: WorkerSettings, queue: Queue) -> None:
    """Runs until it is stopped. Only a team's first process takes tasks and contacts the service."""
    with started(chosen_device(settings.device).type) as team:
        if team is None or team.is_first:
            work(settings, queue, team)
        else:
            follow(settings, team)
