"""Gauges for Prometheus: a few queries, each over an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from ferret_core.protocol.states import AssignmentState, ExperimentState, ParticipantKind, RoundState
from ferret_core.protocol.task_names import Queue, TaskName
from ferret_db import clock
from ferret_db.repositories import assignments, experiments, rounds, workers
from ferret_db.tables import Assignment, Experiment, OutboxMessage, Rejection, Round, TaskRun


class Gauges(NamedTuple):
    """Counts for every state, task and queue, and of rejections by error code.

    ``leases`` are held or expired; ``waiting`` is due work that nobody has taken. ``round_seconds`` are the durations,
    from opening to commit, of the last committed round of every running or paused experiment.
    """

    experiments: dict[ExperimentState, int]
    rounds: dict[RoundState, int]
    assignments: dict[AssignmentState, int]
    leases: dict[str, int]
    waiting: dict[TaskName, int]
    unsent: dict[TaskName, int]
    dead: dict[TaskName, int]
    workers: dict[Queue, int]
    busy: dict[Queue, int]
    rejected: dict[str, int]
    round_seconds: dict[str, float]


def read(s: Session) -> Gauges:
    rounds_by_state = dict.fromkeys(RoundState, 0) | rounds.count_by_state(s)
    held, expired, untrained = _in_hand(s)
    return Gauges(
        experiments=dict.fromkeys(ExperimentState, 0) | experiments.count_by_state(s),
        rounds=rounds_by_state,
        assignments=dict.fromkeys(AssignmentState, 0) | assignments.count_by_state(s),
        leases={"held": held, "expired": expired},
        waiting={TaskName.TRAIN: untrained, TaskName.AGGREGATE: rounds_by_state[RoundState.FROZEN]},
        unsent=dict.fromkeys(TaskName, 0) | _unsent(s),
        dead=dict.fromkeys(TaskName, 0) | _dead(s),
        workers=workers.counts(s),
        busy=workers.busy(s),
        rejected=_rejected(s),
        round_seconds=_round_seconds(s),
    )


def _in_hand(s: Session) -> Sequence[int]:
    leased = Assignment.state == AssignmentState.LEASED
    alive = Assignment.lease_until > clock.utcnow()
    due = and_(Round.state == RoundState.OPEN, Experiment.state == ExperimentState.RUNNING)
    waiting = and_(Assignment.state == AssignmentState.PENDING, Assignment.kind == ParticipantKind.SIMULATED, due)
    counts = [func.count().filter(condition) for condition in (and_(leased, alive), and_(leased, ~alive), waiting)]
    query = select(*counts).select_from(Assignment).join(Round, Round.id == Assignment.round_id)
    return s.execute(
        query.join(Experiment, Experiment.id == Round.experiment_id).where(
            Assignment.state.in_([AssignmentState.PENDING, AssignmentState.LEASED])
        )
    ).one()


def _unsent(s: Session) -> dict[TaskName, int]:
    query = select(OutboxMessage.task, func.count()).where(OutboxMessage.sent_at.is_(None))
    return dict(s.execute(query.group_by(OutboxMessage.task)).all())


def _dead(s: Session) -> dict[TaskName, int]:
    query = select(TaskRun.task, func.count()).where(TaskRun.given_up_at.is_not(None))
    return dict(s.execute(query.group_by(TaskRun.task)).all())


def _rejected(s: Session) -> dict[str, int]:
    query = select(Rejection.code, func.sum(Rejection.count)).group_by(Rejection.code)
    return {code: int(number) for code, number in s.execute(query)}


def _round_seconds(s: Session) -> dict[str, float]:
    last = and_(Round.experiment_id == Experiment.id, Round.number == Experiment.round)
    query = (
        select(Experiment.id, Round.opened_at, Round.committed_at)
        .join(Round, last)
        .where(Experiment.state.in_([ExperimentState.RUNNING, ExperimentState.PAUSED]))
        .where(Round.state == RoundState.COMMITTED)
    )
    return {id: (committed - opened).total_seconds() for id, opened, committed in s.execute(query) if committed}
