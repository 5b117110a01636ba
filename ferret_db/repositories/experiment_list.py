"""The list of experiments: filters and order."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Float, and_, case, cast, func, select
from sqlalchemy.orm import Session, defer

from ferret_core.protocol.errors import FerretError, suggestion
from ferret_core.protocol.metrics import METRICS
from ferret_core.protocol.states import ExperimentState, RoundState
from ferret_db.clock import seconds_between
from ferret_db.pagination import Order, Page, Value, page_in, seek_in
from ferret_db.repositories import experiments
from ferret_db.tables import Contribution, Experiment, ExperimentTag, Metric, Round

NEWEST_FIRST = "-created"


class ExperimentFilter(NamedTuple):
    """A filter. ``name`` is any part of the name, in any case. No states means all; with several tags all must match.

    ``archived`` selects archived experiments instead of all others, ``ids`` those with these ids. Times are from
    ``created_after`` (inclusive) to ``created_before`` (exclusive), so adjacent spans share no experiment. Experiments
    of one ``seed_group`` differ in the seed only. Each of ``bounds`` limits a column of numbers, as in ``eval_loss<2``;
    an experiment without a value does not match.
    """

    states: Sequence[ExperimentState] = ()
    algorithm: str | None = None
    dataset: str | None = None
    name: str | None = None
    archived: bool = False
    project: str | None = None
    tags: Sequence[str] = ()
    created_after: datetime | None = None
    created_before: datetime | None = None
    seed_group: str | None = None
    ids: Sequence[str] | None = None
    bounds: Sequence[str] = ()


def list_page(
    s: Session, wanted: ExperimentFilter, limit: int, cursor: str | None = None, sort: str = NEWEST_FIRST
) -> Page[Experiment]:
    """Lists experiments in the order of the column ``sort``. A minus before its name means descending.

    Raises ``request.invalid`` for an unknown column and for a cursor of another order.
    """
    by = order(sort)
    query = select(Experiment).where(*conditions(wanted)).options(defer(Experiment.shapes), defer(Experiment.notes))
    return page_in(s.execute(seek_in(query, by, Experiment.id, cursor, limit)).all(), by, limit)


def bytes_per_upload(s: Session, experiment_ids: Sequence[str]) -> dict[str, float]:
    """Returns the mean upload size in bytes of each experiment's last committed round, where there is one."""
    query = select(Experiment.id, _upload_size()).where(Experiment.id.in_(experiment_ids))
    return {experiment_id: each for experiment_id, each in s.execute(query) if each is not None}


def conditions(wanted: ExperimentFilter) -> Iterator[ColumnElement[bool]]:
    """Yields the conditions of the filter. Raises ``request.invalid`` for a bound of another kind of column."""
    archived = Experiment.archived_at
    yield archived.is_not(None) if wanted.archived else archived.is_(None)
    if wanted.ids is not None:
        yield Experiment.id.in_(wanted.ids)
    if wanted.states:
        yield Experiment.state.in_(wanted.states)
    if wanted.name:
        yield Experiment.name.icontains(wanted.name, autoescape=True)
    if wanted.created_after is not None:
        yield Experiment.created_at >= wanted.created_after
    if wanted.created_before is not None:
        yield Experiment.created_at < wanted.created_before
    yield from map(experiments.tagged, wanted.tags)
    yield from map(_within, wanted.bounds)
    for column in ("algorithm", "dataset", "project", "seed_group"):
        if value := getattr(wanted, column):
            yield getattr(Experiment, column) == value


BOUND = r"^[A-Za-z_0-9]{1,40}(<=|>=|<|>)-?[0-9]{1,15}(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?$"
"""A column, how it compares, and a number."""
_COMPARISONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


def numbers() -> list[str]:
    """Returns the names of the columns that can be limited."""
    return [name for name, found in _columns().items() if found.kind in (int, float) and name != "state"]


def _within(bound: str) -> ColumnElement[bool]:
    name, sign, number = next(parts for sign in _COMPARISONS if (parts := bound.partition(sign))[1])
    if name not in numbers():
        reason = f"{name} is not a column of numbers; {suggestion(name, numbers())}"
        raise FerretError.of_field("request.invalid", "where", bound, reason)
    return _COMPARISONS[sign](_columns()[name].value, float(number))


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
        "bytes_per_upload": Column(_upload_size(), float, nullable=True, of_group=_mean),
    }


_PLACES = {state: place for place, state in enumerate(ExperimentState)}
"""Sort order of states: the order in which an experiment reaches them."""

_COMPARABLE = [name for name, entry in METRICS.items() if entry.better]
"""Metrics with a best round."""


def _upload_size() -> ColumnElement[Any]:
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


RECENT = 5
"""Number of recent rounds in an estimate: the first compiles kernels, and machines come and go."""


def seconds_left() -> ColumnElement[Any]:
    """Selects the seconds until a running experiment ends, from its last rounds; null without a committed round."""
    remaining = Experiment.rounds - Experiment.round
    return case((Experiment.state == ExperimentState.RUNNING, remaining * _seconds_per_round()))


def seconds_left_of(s: Session, experiment_ids: Sequence[str]) -> dict[str, float]:
    """Returns the estimates by experiment id, where there is one."""
    query = select(Experiment.id, seconds_left()).where(Experiment.id.in_(experiment_ids))
    return {experiment_id: seconds for experiment_id, seconds in s.execute(query) if seconds is not None}


def _seconds_per_round() -> ColumnElement[Any]:
    """Selects the median duration of the last committed rounds: the mean of the middle one or two."""
    committed = and_(Round.experiment_id == Experiment.id, Round.state == RoundState.COMMITTED)
    seconds = seconds_between(Round.opened_at, Round.committed_at).label("seconds")
    last = select(seconds).where(committed).order_by(Round.number.desc()).limit(RECENT)
    recent = last.correlate(Experiment).subquery()
    twice = (2 * func.row_number().over(order_by=recent.c.seconds)).label("twice")
    placed = select(recent.c.seconds, twice, func.count().over().label("count")).subquery()
    middle = placed.c.twice.between(placed.c["count"], placed.c["count"] + 2)
    return select(func.avg(placed.c.seconds)).where(middle).correlate(Experiment).scalar_subquery()
