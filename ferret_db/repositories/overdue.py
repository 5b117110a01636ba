"""Overdue work: a few read-only queries, independent of the number of experiments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, Select, and_, exists, or_, select
from sqlalchemy.orm import Session

from ferret_core.protocol.states import AssignmentState, ExperimentState, RoundState, SumStage
from ferret_core.protocol.task_names import TaskName
from ferret_db import clock
from ferret_db.repositories import outbox, service_clock, task_runs
from ferret_db.tables import Assignment, Experiment, Metric, Round

_UNTIMED = [SumStage.MASK, SumStage.SUM]
_UNFINISHED = [state for state in ExperimentState if not state.finished]


class OpenRound(NamedTuple):
    """A round under way that needs attention."""

    id: str
    experiment_id: str


class Call(NamedTuple):
    """A due task that nobody has taken."""

    task: TaskName
    argument: str
    experiment_id: str


class Patience(NamedTuple):
    """Seconds after which a task counts as lost, an experiment as forgotten, and a silent worker as gone."""

    lost: float
    forgotten: float
    gone: float


def rounds(s: Session) -> Sequence[OpenRound]:
    """Returns the running experiments' open rounds after their deadline."""
    return _open_rounds(s, Round.deadline_at <= service_clock.time(s))


def stages(s: Session) -> Sequence[OpenRound]:
    """Returns the running experiments' secure sums in which a stage of messages has lasted too long."""
    over = Round.stage_until <= service_clock.time(s), Round.stage.not_in(_UNTIMED)
    return _open_rounds(s, *over, states=(RoundState.OPEN, RoundState.FROZEN))


def leases(s: Session) -> Sequence[OpenRound]:
    """Returns the running experiments' open rounds with an expired lease."""
    ran_out = Assignment.state == AssignmentState.LEASED, Assignment.lease_until <= clock.now(s)
    return _open_rounds(s, exists().where(Assignment.round_id == Round.id, *ran_out))


def calls(s: Session, patience: Patience) -> list[Call]:
    """Returns missing calls: coordination between rounds, aggregation of frozen rounds, evaluations that are due, and
    repairs that failed.
    """
    lost_since = clock.now(s) - timedelta(seconds=patience.lost)
    every = cast(Any, Experiment.spec)[("evaluation", "every")].as_integer()
    under_way = Round.experiment_id == Experiment.id, Round.state.in_([RoundState.OPEN, RoundState.FROZEN])
    moving = Experiment.state.in_([ExperimentState.QUEUED, ExperimentState.RUNNING])
    measured = exists().where(Metric.experiment_id == Experiment.id, Metric.round == 0)
    unevaluated = Round.state == RoundState.COMMITTED, Round.evaluated_at.is_(None), Round.committed_at < lost_since
    of_experiment = select(Experiment.id, Experiment.id)
    of_round = select(Round.id, Experiment.id).join(Experiment, Experiment.id == Round.experiment_id)
    of_round = of_round.where(Experiment.state.in_(_UNFINISHED))
    unfinished = of_experiment.where(Experiment.state.in_(_UNFINISHED))
    wanted: list[tuple[TaskName, Select[str, str], float]] = [
        (TaskName.COORDINATE, of_experiment.where(moving, ~exists().where(*under_way)), patience.forgotten),
        (
            TaskName.AGGREGATE,
            of_round.where(
                Round.state == RoundState.FROZEN,
                Round.frozen_at < lost_since,
                or_(Round.stage.is_(None), Round.stage == SumStage.SUM),
            ),
            patience.lost,
        ),
        (TaskName.EVALUATE, unfinished.where(Experiment.started_at < lost_since, ~measured), patience.lost),
        (
            TaskName.EVALUATE,
            of_round.where(*unevaluated, or_(Round.number % every == 0, Round.number == Experiment.rounds)),
            patience.lost,
        ),
        (TaskName.REPAIR, of_experiment.where(Experiment.id.in_(task_runs.failed(TaskName.REPAIR))), patience.lost),
    ]
    return [
        Call(task, argument, experiment_id)
        for task, query, seconds in wanted
        for argument, experiment_id in s.execute(query.where(_in_nobodys_hands(s, task, query, seconds, patience.gone)))
    ]


def _in_nobodys_hands(
    s: Session, task: TaskName, query: Select[str, str], seconds: float, gone: float
) -> ColumnElement[bool]:
    argument = query.selected_columns[0]
    return and_(~outbox.called(s, task, argument, seconds), ~task_runs.in_hand(s, task, argument, gone))


def _open_rounds(
    s: Session, *criteria: ColumnElement[bool], states: Sequence[RoundState] = (RoundState.OPEN,)
) -> Sequence[OpenRound]:
    query = (
        select(Round.id, Round.experiment_id)
        .join(Experiment, Experiment.id == Round.experiment_id)
        .where(Round.state.in_(states), Experiment.state == ExperimentState.RUNNING, *criteria)
        .order_by(Round.deadline_at)
    )
    return [OpenRound(*row) for row in s.execute(query)]
