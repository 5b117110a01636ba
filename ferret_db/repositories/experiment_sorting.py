"""The sort columns of a list of experiments, and their aggregates over a group."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Float, case, cast, func, select

from ferret_core.protocol.errors import FerretError, suggestion
from ferret_core.protocol.metrics import METRICS
from ferret_core.protocol.states import ExperimentState, RoundState
from ferret_db.repositories.time_remaining import seconds_left
from ferret_db.sorting import Order, Value
from ferret_db.tables import Contribution, Experiment, ExperimentTag, Metric, Round

Aggregate = Callable[[Any], ColumnElement[Any]]


def _total(values: Any) -> ColumnElement[Any]:
    return cast(func.sum(values), BigInteger)  # PostgreSQL's sum of these is a decimal


def _mean(values: Any) -> ColumnElement[Any]:
    return cast(func.avg(values), Float)


class Column(NamedTuple):
    """A sort column. ``value`` is an experiment's, of SQL type ``kind``; ``of_group`` aggregates a group's values."""

    value: Value
    kind: type[Any]
    nullable: bool = False
    of_group: Aggregate = func.min


def column(sort: str) -> Column:
    """Returns the column of ``sort``, with or without a leading minus. Raises ``request.invalid`` if it is unknown."""
    known, name = _columns(), sort.removeprefix("-")
    if name not in known:
        reason = f"is no column of the list; {suggestion(name, list(known))}"
        raise FerretError.of_field("request.invalid", "sort", sort, reason)
    return known[name]


def order(sort: str, value: Value | None = None) -> Order:
    """Returns the order of ``sort``, descending with a leading minus, optionally by another ``value`` of its kind."""
    found = column(sort)
    return Order(sort, found.value if value is None else value, found.kind, found.nullable, sort.startswith("-"))


def sorts() -> list[str]:
    """Returns all valid values of ``sort``."""
    return [sign + name for name in _columns() for sign in ("", "-")]


@cache
def _columns() -> dict[str, Column]:
    """Returns the columns by name: experiment fields, costs, and the last and the best value of each metric."""
    return {
        "created": Column(Experiment.created_at, datetime, of_group=func.max),
        "name": Column(func.lower(Experiment.name), str),
        "state": Column(case(_PLACES, value=Experiment.state), int),
        "project": Column(Experiment.project, str),
        "algorithm": Column(Experiment.algorithm, str),
        "dataset": Column(Experiment.dataset, str),
        "round": Column(Experiment.round, int),
        "rounds": Column(Experiment.rounds, int),
        "participants": Column(Experiment.participants, int),
        "seed": Column(_whole(Experiment.spec["seed"]), int),
        "K": Column(_whole(Experiment.spec["algorithm"]["K"]), int, nullable=True),
        "bytes_per_round": Column(_whole(Experiment.spec["algorithm"]["bytes_per_round"]), int, nullable=True),
        "learning_rate": Column(
            cast(Experiment.spec["algorithm"]["local"]["learning_rate"].as_string(), Float), float, nullable=True
        ),
        "tags": Column(_first_tag(), str, nullable=True),
        "error": Column(Experiment.error["code"].as_string(), str, nullable=True),
        "started": Column(Experiment.started_at, datetime, nullable=True, of_group=func.max),
        "finished": Column(Experiment.finished_at, datetime, nullable=True, of_group=func.max),
        **{name: Column(_last(name), float, nullable=True, of_group=_mean) for name in METRICS},
        **{f"best_{name}": Column(_best(name), float, nullable=True, of_group=_mean) for name in _COMPARABLE},
        # Metrics with these names are per round.
        "bytes_up": Column(_sum(Round.bytes_up), int, of_group=_total),
        "bytes_down": Column(_sum(Round.bytes_down), int, of_group=_total),
        "left": Column(seconds_left(), float, nullable=True, of_group=func.max),
        "bytes_per_upload": Column(bytes_per_upload(), float, nullable=True, of_group=_mean),
    }


_PLACES = {state: place for place, state in enumerate(ExperimentState)}
"""Sort order of states: the order in which an experiment reaches them."""

_COMPARABLE = [name for name, entry in METRICS.items() if entry.better]
"""Metrics with a best round."""


def bytes_per_upload() -> ColumnElement[Any]:
    """Selects the mean size in bytes of the contributions accepted in the last committed round."""
    sizes = select(cast(func.avg(Contribution.size), Float)).join(Round, Round.id == Contribution.round_id)
    last = Round.experiment_id == Experiment.id, Round.number == Experiment.round, Round.state == RoundState.COMMITTED
    return sizes.where(*last).correlate(Experiment).scalar_subquery()


def _whole(option: Any) -> ColumnElement[Any]:
    return cast(option.as_string(), BigInteger)  # an integer would have 32 bits on PostgreSQL


def _first_tag() -> ColumnElement[Any]:
    keys = select(func.min(ExperimentTag.key)).where(ExperimentTag.experiment_id == Experiment.id)
    return keys.correlate(Experiment).scalar_subquery()


def _last(name: str) -> ColumnElement[Any]:
    values = select(Metric.value).where(Metric.experiment_id == Experiment.id, Metric.name == name)
    return values.order_by(Metric.round.desc()).limit(1).correlate(Experiment).scalar_subquery()


def _best(name: str) -> ColumnElement[Any]:
    extreme = func.max if METRICS[name].better == "high" else func.min
    values = select(extreme(Metric.value)).where(Metric.experiment_id == Experiment.id, Metric.name == name)
    return values.correlate(Experiment).scalar_subquery()


def _sum(column: Any) -> ColumnElement[Any]:
    total = select(cast(func.coalesce(func.sum(column), 0), BigInteger))
    return total.where(Round.experiment_id == Experiment.id).correlate(Experiment).scalar_subquery()
