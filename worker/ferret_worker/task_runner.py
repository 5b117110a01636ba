"""The only way to run a task: counted before it begins, logged under its ids, and with its end recorded."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.task_names import TaskName
from ferret_core.system import untrusted_files
from ferret_db.database import Database
from ferret_db.engine import task_attempts
from ferret_db.engine.round_span import trace_of
from ferret_db.engine.task_attempts import TaskSubject
from ferret_db.repositories import assignments, rounds
from ferret_db.repositories.workers import WorkerIdentity
from ferret_runtime import log_setup, tracing
from ferret_runtime.tracing import Note, RoundTrace
from ferret_worker.aggregate import aggregate
from ferret_worker.coordinate import coordinate
from ferret_worker.evaluate import evaluate
from ferret_worker.repair import repair
from ferret_worker.train import train
from ferret_worker.watchdog import Watchdog
from ferret_worker.worker_heartbeat import WorkerHeartbeat
from ferret_worker.worker_state import WorkerState

logger = logging.getLogger(__name__)

TASKS: dict[TaskName, Callable[[WorkerState, str], None]] = {
    TaskName.COORDINATE: coordinate,
    TaskName.TRAIN: train,
    TaskName.AGGREGATE: aggregate,
    TaskName.EVALUATE: evaluate,
    TaskName.REPAIR: repair,
}
"""The function that each message calls, with its one id."""


def perform(
    context: WorkerState, presence: WorkerHeartbeat, task: TaskName, argument: str, watchdog: Watchdog | None = None
) -> None:
    """Runs a task, unless it must not run. Its error is stored for the next attempt and not raised.

    A ``watchdog`` ends the process if the task does not end.
    """
    settings, database, who = context.settings, context.database, presence.who
    with presence.at(task, argument), log_setup.bound(worker=who.id, task=str(task)):
        begin = partial(task_attempts.begin, strikes=settings.task_max_attempts, gone=settings.gone_seconds)
        subject = database.transact(lambda s: begin(s, task, argument, who), flush=False)
        if subject is None:
            return
        ids = {name: value for name, value in subject._asdict().items() if value is not None}
        with log_setup.bound(**ids):
            with watchdog.over(task, argument, subject.experiment) if watchdog else nullcontext():
                end = _run(context, task, argument, subject)
            database.transact(lambda s: end(s, task, argument, who), flush=False)


def _run(
    context: WorkerState, task: TaskName, argument: str, subject: task_attempts.TaskSubject
) -> Callable[[Session, TaskName, str, WorkerIdentity], None]:
    try:
        with untrusted_files.allowed_roots(context.settings.readable), _span(context.database, task, argument, subject):
            TASKS[task](context, argument)
    except FerretError as error:
        if error.code in task_attempts.REFUSED:
            logger.info("%s: %s", argument, error.detail)
            # A returned assignment has its message already.
            return partial(task_attempts.released, again=error.code == "worker.stopping" and task != TaskName.TRAIN)
        logger.warning("%s failed: %s", argument, error.detail)
        context.team_lost = error.code == "process_group.failed"
        return _failed(error)
    except Exception as error:
        logger.exception("%s failed", argument)
        context.device_lost = isinstance(error, RuntimeError) and "CUDA error" in str(error)
        return _failed(error)
    return task_attempts.done


def _failed(error: Exception) -> Callable[[Session, TaskName, str, WorkerIdentity], None]:
    """Keeps the reportable part of the error, without the frames and tensors that it holds."""
    return partial(task_attempts.failed, error=task_attempts.described(error), strike=task_attempts.is_strike(error))


def _span(database: Database, task: TaskName, argument: str, subject: TaskSubject) -> AbstractContextManager[Note]:
    of = _round_trace(database, task, argument) if tracing.on() else None
    return tracing.span(task.removeprefix("ferret."), of, "consumer", **subject._asdict())


def _round_trace(database: Database, task: TaskName, argument: str) -> RoundTrace | None:
    with database.read() as s:
        if task == TaskName.TRAIN:
            argument = assignments.get(s, argument).round_id
        return trace_of(rounds.get(s, argument)) if argument.startswith("rnd_") else None
