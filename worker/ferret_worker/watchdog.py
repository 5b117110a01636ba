"""A watchdog that ends the process if its task does not end: not needed, too long, or with too much memory.

Some work cannot be interrupted: a single step, the reading of a file, a library that hangs. So the process ends itself,
as in a crash, which every part of the service survives; a supervisor starts it again. The reason is first stored in the
database, so that the responsible experiment, and no other, gets it.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from sqlalchemy.orm import Session

from ferret_core.protocol.errors import Exit, FerretError
from ferret_core.protocol.states import AssignmentState
from ferret_core.protocol.task_names import TaskName
from ferret_core.system import memory_limit
from ferret_db.engine import task_attempts
from ferret_db.repositories import assignments, experiments
from ferret_worker.settings import WorkerSettings
from ferret_worker.worker_heartbeat import WorkerHeartbeat
from ferret_worker.worker_state import WorkerState

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
GRACE_SECONDS = 1.0
"""Seconds for a task to end after its experiment was cancelled."""
LATE_GRACE_SECONDS = 30.0
"""Seconds for a task to end after its round was closed: finishing a straggler's step costs less than a new process."""
RECORD_SECONDS = 5.0
"""Seconds to store the reason; then it is skipped: the stuck task may hold the database."""
STUCK_SECONDS = 120
"""Seconds without a turn, because foreign code holds the interpreter, after which the process ends without a reason."""


@dataclass
class _Watched:
    task: TaskName
    argument: str
    experiment: str
    since: float
    unwanted_since: float | None = None


class Watchdog(threading.Thread):
    """Checks the running task four times a second; ``end`` ends the process."""

    def __init__(
        self, context: WorkerState, presence: WorkerHeartbeat, end: Callable[[int], object] = os._exit
    ) -> None:
        super().__init__(name="watchdog", daemon=True)
        self._context = context
        self._presence = presence
        self._end_process = end
        self._limit = context.settings.memory_limit
        self._watched: _Watched | None = None
        self._lock = threading.Lock()

    @contextmanager
    def over(self, task: TaskName, argument: str, experiment: str) -> Generator[None]:
        """Watches this task during the block."""
        self._context.unwanted = False
        with self._lock:
            self._watched = _Watched(task, argument, experiment, time.monotonic())
        try:
            yield
        finally:
            with self._lock:  # a process that is being ended stops here
                self._watched = None

    def run(self) -> None:
        while True:
            if sys.stderr is not None:
                faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True)
            time.sleep(LOOK_SECONDS)
            try:
                self.look()
            except Exception:
                logger.exception("could not look at the running task; will retry")

    def look(self) -> None:
        """Checks the task once."""
        if (watched := self._watched) is None:
            return
        error = self._excess(watched)
        if error or self._is_overdue(watched):
            with self._lock:
                if self._watched is watched:
                    self._end(watched, error)

    def _excess(self, watched: _Watched) -> FerretError | None:
        settings, held = self._context.settings, memory_limit.resident_bytes()
        name = watched.task.removeprefix("ferret.")
        if held > self._limit:
            message = f"{name} of {watched.argument} took {held >> 20} MiB, {self._limit >> 20} are allowed: lower "
            return FerretError("memory.exhausted", message + "batch sizes, or raise FERRET_TASK_MEMORY_BYTES")
        limit, remedy = _limit(settings, watched.task)
        if (seconds := time.monotonic() - watched.since) > limit:
            message = f"{name} of {watched.argument} took {seconds:.0f} s, {limit} are allowed: {remedy}"
            return FerretError("task.too_long", message)
        return None

    def _is_overdue(self, watched: _Watched) -> bool:
        """True if an unneeded task continues; the first detection signals it to stop."""
        with self._context.database.read() as s:
            grace = _grace(s, watched)
        if grace is None:
            watched.unwanted_since = None
            return False
        if watched.unwanted_since is None:
            watched.unwanted_since = time.monotonic()
            self._context.unwanted = True
        return time.monotonic() - watched.unwanted_since > grace

    def _end(self, watched: _Watched, error: FerretError | None) -> None:
        recorder = threading.Thread(target=self._record, args=(watched, error), name="last words", daemon=True)
        recorder.start()
        recorder.join(RECORD_SECONDS)
        self._end_process(Exit.FAILURE)

    def _record(self, watched: _Watched, error: FerretError | None) -> None:
        reason = error.detail if error else f"{watched.experiment} does not need {watched.argument} any more"
        logger.error("this process ends, another takes its place: %s", reason)
        held = watched.task, watched.argument, self._presence.who
        endless = watched.task == TaskName.COORDINATE and error is not None and error.code == "task.too_long"
        strikes = 1 if endless else self._context.settings.task_max_attempts  # it would block the next worker as long
        note = partial(task_attempts.ended_process, error=error, strikes=strikes)
        self._context.database.transact(lambda s: note(s, *held), flush=False)


def _limit(settings: WorkerSettings, task: TaskName) -> tuple[int, str]:
    """Returns the maximum seconds of the task, and the advice for longer ones."""
    if task == TaskName.COORDINATE:
        return settings.prepare_limit_seconds, "use a smaller model or less data, or raise FERRET_PREPARE_LIMIT_SECONDS"
    return settings.task_limit_seconds, "ask for fewer steps, or raise FERRET_TASK_LIMIT_SECONDS"


def _grace(s: Session, watched: _Watched) -> float | None:
    """Returns the seconds that the task may continue, or None if it is needed. A task without a row is not needed."""
    try:
        if experiments.get(s, watched.experiment).state.finished:
            return None if watched.task == TaskName.REPAIR else GRACE_SECONDS
        if watched.task == TaskName.TRAIN:
            state = assignments.get(s, watched.argument).state
            return None if state in {AssignmentState.PENDING, AssignmentState.LEASED} else LATE_GRACE_SECONDS
    except FerretError:
        return GRACE_SECONDS
    return None
