"""Estimates of remaining time in SQL, so that lists can be sorted by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, case, func, select
from sqlalchemy.orm import Session

from ferret_core.protocol.states import ExperimentState, RoundState
from ferret_db.clock import seconds_between
from ferret_db.tables import Experiment, Round

RECENT = 5
"""Number of recent rounds in an estimate: the first compiles kernels, and machines come and go."""


def seconds_left() -> ColumnElement[Any]:
    """Selects the seconds until a running experiment ends, from its last rounds; null without a committed round."""
    remaining = Experiment.rounds - Experiment.round
    return case((Experiment.state == ExperimentState.RUNNING, remaining * _seconds_of_a_round()))


def seconds_left_of(s: Session, experiment_ids: Sequence[str]) -> dict[str, float]:
    """Returns the estimates by experiment id, where there is one."""
    query = select(Experiment.id, seconds_left()).where(Experiment.id.in_(experiment_ids))
    return {experiment_id: seconds for experiment_id, seconds in s.execute(query) if seconds is not None}


def _seconds_of_a_round() -> ColumnElement[Any]:
    """Selects the median duration of the last committed rounds: the mean of the middle one or two."""
    committed = and_(Round.experiment_id == Experiment.id, Round.state == RoundState.COMMITTED)
    seconds = seconds_between(Round.opened_at, Round.committed_at).label("seconds")
    last = select(seconds).where(committed).order_by(Round.number.desc()).limit(RECENT)
    recent = last.correlate(Experiment).subquery()
    twice = (2 * func.row_number().over(order_by=recent.c.seconds)).label("twice")
    placed = select(recent.c.seconds, twice, func.count().over().label("count")).subquery()
    middle = placed.c.twice.between(placed.c["count"], placed.c["count"] + 2)
    return select(func.avg(placed.c.seconds)).where(middle).correlate(Experiment).scalar_subquery()
