"""What crashes lost is done again: unsent messages, lost leases, missed deadlines, forgotten rounds.

Any number of processes may run it every few seconds. Everything it repeats is idempotent, and what another
transaction has locked is left to that one.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from ferret_core import federation
from ferret_core.protocol.states import ParticipantKind, RoundState
from ferret_core.protocol.tasks import TaskName
from ferret_db import clock
from ferret_db.engine.assignments import release
from ferret_db.engine.rounds import freeze_if_due
from ferret_db.repositories import assignments, experiments, metrics, outbox, rounds
from ferret_db.repositories.experiments import spec_of
from ferret_db.tables import Experiment, Round

UNSENT_SECONDS = 2.0
IDLE_SECONDS = 15.0
STUCK_SECONDS = 30.0
SENT_KEPT_SECONDS = 3600.0


def reconcile(s: Session) -> None:
    """One sweep over everything unfinished."""
    outbox.forget(s, SENT_KEPT_SECONDS)
    outbox.resend(s, UNSENT_SECONDS)
    for experiment in experiments.lock_unfinished(s):
        for round_ in rounds.in_states(s, experiment.id, RoundState.OPEN):
            _tend(s, round_)
        _repeat_lost_tasks(s, experiment)


def _tend(s: Session, round_: Round) -> None:
    """An open round: takes lost leases back and closes it at its deadline; an idle queue gets its work again."""
    now = clock.now(s)
    for assignment in assignments.lost(s, round_.id):
        free = release(s, assignment, now)
        if free is not None and free.kind == ParticipantKind.SIMULATED:
            outbox.add(s, TaskName.TRAIN, free.id)
    if now >= round_.deadline_at:
        freeze_if_due(s, round_.id)
    elif not assignments.workers_busy(s):
        # While workers are busy the queue is alive and pending work merely waits its turn.
        for assignment in assignments.pending_simulated(s, round_.id):
            _repeat(s, TaskName.TRAIN, assignment.id, STUCK_SECONDS)


def _repeat_lost_tasks(s: Session, experiment: Experiment) -> None:
    """Between rounds the experiment is coordinated again; frozen rounds are aggregated, due ones evaluated again."""
    if experiments.get(s, experiment.id).state.finished:
        return
    stuck_since = clock.now(s) - timedelta(seconds=STUCK_SECONDS)
    open_rounds = rounds.in_states(s, experiment.id, RoundState.OPEN, RoundState.FROZEN)
    if not open_rounds:
        _repeat(s, TaskName.COORDINATE, experiment.id, IDLE_SECONDS)
    for round_ in open_rounds:
        if _before(round_.frozen_at, stuck_since):
            _repeat(s, TaskName.AGGREGATE, round_.id, STUCK_SECONDS)
    if _before(experiment.started_at, stuck_since) and not metrics.by_round(s, experiment.id, [0]):
        _repeat(s, TaskName.EVALUATE, experiment.id, STUCK_SECONDS)
    for round_ in rounds.unevaluated(s, experiment.id):
        if _before(round_.committed_at, stuck_since) and federation.evaluation_due(spec_of(experiment), round_.number):
            _repeat(s, TaskName.EVALUATE, round_.id, STUCK_SECONDS)


def _before(moment: datetime | None, limit: datetime) -> bool:
    return moment is not None and moment < limit


def _repeat(s: Session, task: TaskName, argument: str, seconds: float) -> None:
    """Sends the task again unless its message still waits or is younger than ``seconds``."""
    if not outbox.waiting(s, task, argument, seconds):
        outbox.add(s, task, argument)
