"""The span of a task: under its round, or otherwise under its caller."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ferret_core.protocol.task_names import TaskName
from ferret_db.database import Database
from ferret_db.engine.round_span import trace_of
from ferret_db.engine.task_attempts import TaskSubject
from ferret_db.repositories import assignments, rounds
from ferret_runtime import tracing
from ferret_runtime.tracing import Note, RoundTrace


def over(database: Database, task: TaskName, argument: str, subject: TaskSubject) -> AbstractContextManager[Note]:
    """Opens a span for the work on the task that ``argument`` and ``subject`` identify."""
    of = _round(database, task, argument) if tracing.on() else None
    return tracing.span(task.removeprefix("ferret."), of, "consumer", **subject._asdict())


def _round(database: Database, task: TaskName, argument: str) -> RoundTrace | None:
    with database.read() as s:
        if task == TaskName.TRAIN:
            argument = assignments.get(s, argument).round_id
        return trace_of(rounds.get(s, argument)) if argument.startswith("rnd_") else None
