"""What crashes lost is done again: unsent messages, lost leases, missed deadlines, forgotten rounds.

Any number of processes may run it every few seconds. Everything it repeats is idempotent, and what another
transaction has locked is left to that one.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from ferret_core.protocol.states import ExperimentState, RoundState
from ferret_core.protocol.tasks import Queue, TaskName
from ferret_db import clock
from ferret_db.engine import tasks
from ferret_db.engine.rounds import freeze_if_due
from ferret_db.repositories import assignments, experiments, metrics, outbox, rounds, task_runs, workers
from ferret_db.tables import Experiment, Round

logger = logging.getLogger(__name__)

UNSENT_SECONDS = 2.0
SENT_KEPT_SECONDS = 3600.0
WORKERS_KEPT_SECONDS = 24 * 3600.0


class Patience(NamedTuple):
    """Seconds after which a message counts as lost, an experiment as forgotten, and a silent worker as gone."""

    lost: float
    forgotten: float
    gone: float


def reconcile(s: Session, lease_seconds: float = 60.0) -> None:
    """One sweep over everything unfinished. Work that no worker has is sent again after half a lease.

    An experiment that cannot be handled, say for a specification of another version, does not hold up the others.
    """
    patience = Patience(lease_seconds / 2, lease_seconds / 4, workers.gone_after(lease_seconds))
    outbox.forget(s, SENT_KEPT_SECONDS)
    workers.forget(s, WORKERS_KEPT_SECONDS)
    outbox.resend(s, UNSENT_SECONDS)
    tasks.recover(s, patience.gone)
    for experiment in experiments.lock_unfinished(s):
        try:
            with outbox.savepoint(s):
                _tend(s, experiment, patience)
        except SQLAlchemyError:
            raise
        except Exception:
            logger.exception("%s could not be checked; it will be retried", experiment.id)


def _tend(s: Session, experiment: Experiment, patience: Patience) -> None:
    if experiment.state == ExperimentState.RUNNING:
        for round_ in rounds.in_states(s, experiment.id, RoundState.OPEN):
            _tend_round(s, round_, patience)
    experiment = experiments.get(s, experiment.id)
    if not experiment.state.finished:
        _repeat_lost_tasks(s, experiment, patience)


def _tend_round(s: Session, round_: Round, patience: Patience) -> None:
    """An open round: closed if that is due, else lost leases are taken back and an idle queue gets its work again."""
    if freeze_if_due(s, round_.id) or rounds.get(s, round_.id).state != RoundState.OPEN:
        return
    outbox.add_all(s, TaskName.TRAIN, assignments.release_lost(s, round_.id))
    # While all workers are busy, pending work merely waits its turn; while there are none, nobody misses a message.
    if workers.idle(s, Queue.TRAIN, patience.gone):
        outbox.add_all(s, TaskName.TRAIN, assignments.uncalled(s, round_.id, patience.lost))


def _repeat_lost_tasks(s: Session, experiment: Experiment, patience: Patience) -> None:
    """Between rounds the experiment is coordinated again; frozen rounds are aggregated, due ones evaluated again."""
    lost_since = clock.now(s) - timedelta(seconds=patience.lost)
    under_way = rounds.in_states(s, experiment.id, RoundState.OPEN, RoundState.FROZEN)
    if not under_way and experiment.state != ExperimentState.PAUSED:
        _repeat(s, TaskName.COORDINATE, experiment.id, patience.forgotten, patience.gone)
    lost = [(TaskName.AGGREGATE, round_.id) for round_ in under_way if _before(round_.frozen_at, lost_since)]
    if _before(experiment.started_at, lost_since) and not metrics.by_round(s, experiment.id, [0]):
        lost.append((TaskName.EVALUATE, experiment.id))
    unevaluated = rounds.unevaluated(s, experiment)
    lost += [(TaskName.EVALUATE, round_.id) for round_ in unevaluated if _before(round_.committed_at, lost_since)]
    for task, argument in lost:
        _repeat(s, task, argument, patience.lost, patience.gone)


def _before(moment: datetime | None, limit: datetime) -> bool:
    return moment is not None and moment < limit


def _repeat(s: Session, task: TaskName, argument: str, seconds: float, gone: float) -> None:
    """Sends the task again unless a worker has it in hand, or a message for it waits or is younger than ``seconds``."""
    if task_runs.held(s, task, argument, gone) is None and not outbox.waiting(s, task, argument, seconds):
        outbox.add(s, task, argument)
