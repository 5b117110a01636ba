"""A task's attempts, counted before they run: a task that keeps killing its workers is given up, and the rest
continues.

A worker that disappears leaves its attempt counted. A task that succeeds resets the count. A task that is returned, or
fails for an external reason (a full disk), undoes only this attempt. At most one worker works on a task. A message that
arrives meanwhile is sent again when that worker is done.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any, NamedTuple

from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, RoundState
from ferret_core.protocol.task_names import TaskName
from ferret_core.system.atomic_files import is_full
from ferret_db import clock
from ferret_db.engine import assignments, lifecycle
from ferret_db.repositories import assignments as assignment_rows
from ferret_db.repositories import events, experiments, metrics, outbox, rounds, task_runs, workers
from ferret_db.repositories.workers import GONE_SECONDS, WorkerIdentity
from ferret_db.tables import TaskRun

logger = logging.getLogger(__name__)

REFUSED = frozenset({"lease.lost", "round.closed", "experiment.conflict", "worker.stopping"})
"""Errors that do not count as failures: the work is not needed, or was returned."""
TRANSIENT = frozenset({"storage.full", "storage.unreachable", "storage.refused"})
"""Errors of the environment: the same task can succeed once they are fixed."""
LIMITS = frozenset({"memory.exhausted", "task.too_long"})
"""Reasons for a worker to end its own process in the middle of a task."""
_BURIAL_SECONDS = 60.0


class TaskSubject(NamedTuple):
    """The objects that a task concerns."""

    experiment: str
    round: int | None = None
    participant: str | None = None


def subject_of(s: Session, task: TaskName, argument: str) -> TaskSubject:
    """Returns the objects that the task's id refers to. Raises their ``….not_found``."""
    match task:
        case TaskName.TRAIN:
            assignment = assignment_rows.get(s, argument)
            return TaskSubject(assignment.experiment_id, assignment.round, assignment.participant)
        case TaskName.AGGREGATE | TaskName.EVALUATE if argument.startswith("rnd_"):
            round_ = rounds.get(s, argument)
            return TaskSubject(round_.experiment_id, round_.number)
        case _:
            return TaskSubject(experiments.get(s, argument).id)


def begin(
    s: Session, task: TaskName, argument: str, who: WorkerIdentity, *, strikes: int, gone: float = GONE_SECONDS
) -> TaskSubject | None:
    """Counts an attempt at the task and assigns it to the worker. Returns its subject, or None if it must not run.

    It does not run if its subject no longer exists or another worker is working on it. After ``strikes`` failed
    attempts it is given up, and the objects waiting for it get the error. A worker that has not been seen for ``gone``
    seconds is considered dead.
    """
    try:
        subject = subject_of(s, task, argument)
    except FerretError as error:
        outbox.drop(s, task, argument)
        logger.info("the subject of %s no longer exists: %s", task, error.detail)
        return None
    sent_at = outbox.take(s, task, argument)
    run = task_runs.get(s, task, argument)
    if _in_other_hands(s, task, argument, who, gone):
        if run is not None:
            task_runs.change(s, run, reschedule_requested=True)
        return None
    if run is not None and (run.given_up_at or (run.attempts >= strikes and run.worker != who.id)):
        _bury(s, run, subject)
        return None
    if not _taken(s, run, task, argument, subject, who):
        return begin(s, task, argument, who, strikes=strikes, gone=gone)
    workers.seen(s, who, task, argument, sent_at)
    return subject


def _taken(
    s: Session, run: TaskRun | None, task: TaskName, argument: str, subject: TaskSubject, who: WorkerIdentity
) -> bool:
    """Returns True if the attempt is ours, False if another worker has just taken it."""
    if run is None:
        return task_runs.add(s, task, argument, subject.experiment, who.id)
    # If this very process could not record the end of its attempt, the attempt killed nobody: it is not counted twice.
    return run.worker == who.id or task_runs.take(s, run, who.id)


def done(s: Session, task: TaskName, argument: str, who: WorkerIdentity) -> None:
    """Records that the task has succeeded and clears its failures."""
    workers.seen(s, who)
    run = task_runs.get(s, task, argument, lock=True)
    if run is None:
        return
    if run.worker != who.id:  # this worker was considered dead, and another has begun
        task_runs.change(s, run, attempts=run.attempts - 1)
        return
    task_runs.drop(s, run)
    if run.reschedule_requested:
        outbox.add(s, task, argument, run.experiment_id)


def released(s: Session, task: TaskName, argument: str, who: WorkerIdentity, *, again: bool = False) -> None:
    """Records that the task was returned or refused, without a strike. Earlier strikes stay. ``again`` requeues it."""
    workers.seen(s, who)
    run = task_runs.get(s, task, argument, lock=True)
    if run is None:
        return
    mine = run.worker == who.id
    if mine and run.attempts <= 1 and run.error is None:
        task_runs.drop(s, run)
    else:
        _let_go(s, run, who, attempts=run.attempts - 1)
    if again or (mine and run.reschedule_requested):
        outbox.add(s, task, argument, run.experiment_id)


def failed(s: Session, task: TaskName, argument: str, who: WorkerIdentity, error: FerretError, *, strike: bool) -> None:
    """Records that the task ended in ``error``. The reconciler retries it. Only a ``strike`` counts."""
    workers.seen(s, who)
    run = task_runs.get(s, task, argument, lock=True)
    if run is not None:
        _let_go(s, run, who, attempts=run.attempts - (not strike), error=error.to_json())


def ended_process(
    s: Session, task: TaskName, argument: str, who: WorkerIdentity, *, error: FerretError | None, strikes: int
) -> None:
    """Records that the worker ends its process because the task did not stop: after ``error``, or because it is not
    needed.

    An error is a strike. With ``strikes`` of them in all its tasks the experiment fails: otherwise it could end as many
    processes as it has clients. With fewer the task is requested again.
    """
    if error is None:
        released(s, task, argument, who)
    else:
        failed(s, task, argument, who, error, strike=True)
    workers.leave(s, who.id)
    if error is None:
        return
    experiment = experiments.lock(s, subject_of(s, task, argument).experiment)
    if experiment.state.finished:
        return
    if task_runs.strikes(s, experiment.id, LIMITS) >= strikes:
        lifecycle.fail(s, experiment.id, error)
    elif task == TaskName.TRAIN:
        _end_lease(s, argument)
    else:
        outbox.add(s, task, argument, experiment.id)


def recover(s: Session, run: TaskRun) -> None:
    """Requests a vanished worker's task again; see ``task_runs.orphaned``."""
    if not task_runs.let_go(s, run):
        return
    if run.task == TaskName.TRAIN:
        _end_lease(s, run.argument)
    else:
        outbox.add(s, run.task, run.argument, run.experiment_id)


def _end_lease(s: Session, assignment_id: str) -> None:
    assignment = assignment_rows.get(s, assignment_id)
    if assignment.state == AssignmentState.PENDING:  # its worker died before it could lease it
        outbox.add(s, TaskName.TRAIN, assignment_id, assignment.experiment_id)
    elif assignment.state == AssignmentState.LEASED:
        with suppress(FerretError):  # an expired lease is handled elsewhere
            assignments.give_back(s, assignment_id, assignment.fence)


def described(error: BaseException) -> FerretError:
    """Returns the error as one of the catalog's."""
    if isinstance(error, FerretError):
        return error
    if is_full(error):
        return FerretError("storage.full", f"{error}: free some space, it will be retried")
    return FerretError("internal", f"{type(error).__name__}: {error}")


def is_strike(error: BaseException) -> bool:
    """Returns True if the task may be the cause, rather than a full disk or a lost database."""
    return described(error).code not in TRANSIENT and not isinstance(error, OperationalError | InterfaceError)


def _in_other_hands(s: Session, task: TaskName, argument: str, who: WorkerIdentity, gone: float) -> bool:
    """Returns True if another worker holds the task. For an assignment the lease decides, which expires sooner."""
    if task == TaskName.TRAIN:
        assignment = assignment_rows.get(s, argument)
        until = assignment.lease_until
        return assignment.state == AssignmentState.LEASED and until is not None and until > clock.now(s)
    held = task_runs.held(s, task, argument, gone)
    return held is not None and held.worker != who.id


def _let_go(s: Session, run: TaskRun, who: WorkerIdentity, **values: Any) -> None:
    if run.worker == who.id:
        values |= {"worker": None, "reschedule_requested": False}
    task_runs.change(s, run, **values)


def _bury(s: Session, run: TaskRun, subject: TaskSubject) -> None:
    """Marks the task dead and fails whatever waits for it. Repeats the second part if that failed before."""
    experiment = experiments.lock(s, subject.experiment)
    if run.given_up_at is None:
        logger.error("%s %s is dead after %d attempts", run.task, run.argument, run.attempts)
        task_runs.change(s, run, given_up_at=clock.utcnow(), worker=None, error=_cause(run).to_json())
        run = task_runs.get(s, run.task, run.argument) or run
    if experiment.state.finished or not _still_due(s, run, subject):
        return
    error = FerretError("task.given_up", str((run.error or {}).get("detail")))
    match run.task:
        case TaskName.TRAIN:
            _reject(s, run.argument, error)
        case TaskName.EVALUATE if subject.round is not None:
            _leave_unevaluated(s, subject.experiment, subject.round, error)
        case _:
            lifecycle.fail(s, experiment.id, error)


def _still_due(s: Session, run: TaskRun, subject: TaskSubject) -> bool:
    """Returns True if the task is still due: its success may not have been recorded."""
    match run.task:
        case TaskName.AGGREGATE:
            return rounds.get(s, run.argument).state == RoundState.FROZEN
        case TaskName.EVALUATE if subject.round is not None:
            return rounds.get(s, run.argument).evaluated_at is None
        case TaskName.EVALUATE:
            return not metrics.by_round(s, subject.experiment, [0])
        case TaskName.REPAIR:
            return False
        case _:
            return True


def _cause(run: TaskRun) -> FerretError:
    last = f"the last time: {run.error['detail']}" if run.error else "each time its worker disappeared"
    name = run.task.removeprefix("ferret.")
    return FerretError(
        "task.given_up",
        f"{name} of {run.argument} was started {run.attempts} times and never succeeded, {last}; look for "
        f"{run.argument} in the workers' logs, fix the cause and clone the experiment",
    )


def _reject(s: Session, assignment_id: str, error: FerretError) -> None:
    leased = assignments.lease(s, assignment_id, _BURIAL_SECONDS)
    if leased is not None:
        assignments.reject(s, leased.id, leased.fence, error)


def _leave_unevaluated(s: Session, experiment_id: str, number: int, error: FerretError) -> None:
    """Marks the round as evaluated, without metrics, so that the experiment continues."""
    rounds.evaluated(s, experiment_id, number)
    data = {"code": error.code, "detail": error.detail}
    events.add(s, experiment_id, "evaluation.failed", round=number, data=data)
    outbox.add(s, TaskName.COORDINATE, experiment_id)
