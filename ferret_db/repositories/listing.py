"""The list of experiments: which, and in what order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, case, cast, func, select
from sqlalchemy.orm import Session, defer

from ferret_core.protocol.errors import FerretError, suggestion
from ferret_core.protocol.metrics import METRICS
from ferret_core.protocol.states import ExperimentState
from ferret_db.ordering import Order, Value, page_in, seek_in
from ferret_db.pagination import Page
from ferret_db.repositories import tags
from ferret_db.tables import Experiment, Metric, Round

NEWEST_FIRST = "-created"


class ExperimentFilter(NamedTuple):
    """What to list; ``name`` is any part of the name, in any case. No states means all, several tags mean each.

    ``archived`` asks for archived experiments instead of all others. Times are from ``created_after`` on and before
    ``created_before``, so that spans that touch share no experiment.
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


class _Column(NamedTuple):
    """What a list can be sorted by."""

    value: Value
    kind: type[Any]
    nullable: bool = False


def list_page(
    s: Session, wanted: ExperimentFilter, limit: int, cursor: str | None = None, sort: str = NEWEST_FIRST
) -> Page[Experiment]:
    """Experiments in the order of the column ``sort``; with a minus before its name, the greatest first.

    Raises ``request.invalid`` for a column that is none, and for a cursor of another order.
    """
    order = _order(sort)
    query = select(Experiment).where(*_conditions(wanted)).options(defer(Experiment.shapes), defer(Experiment.notes))
    return page_in(s.execute(seek_in(query, order, Experiment.id, cursor, limit)).all(), order, limit)


def sorts() -> list[str]:
    """All that ``sort`` may be."""
    return [sign + name for name in _columns() for sign in ("", "-")]


def _order(sort: str) -> Order:
    columns, name = _columns(), sort.removeprefix("-")
    if name not in columns:
        reason = f"is no column of the list; {suggestion(name, list(columns))}"
        raise FerretError.of_field("request.invalid", "sort", sort, reason)
    return Order(sort, *columns[name], descending=sort != name)


def _columns() -> dict[str, _Column]:
    """By their names: the experiments' own, what they have cost, and the last value of each metric."""
    return {
        "created": _Column(Experiment.created_at, datetime),
        "name": _Column(func.lower(Experiment.name), str),
        "state": _Column(case(_PLACES, value=Experiment.state), int),
        "project": _Column(Experiment.project, str),
        "algorithm": _Column(Experiment.algorithm, str),
        "dataset": _Column(Experiment.dataset, str),
        "round": _Column(Experiment.round, int),
        "rounds": _Column(Experiment.rounds, int),
        "participants": _Column(Experiment.participants, int),
        "started": _Column(Experiment.started_at, datetime, nullable=True),
        "finished": _Column(Experiment.finished_at, datetime, nullable=True),
        **{name: _Column(_last(name), float, nullable=True) for name in METRICS},
        # The metrics of these names are one round's.
        "bytes_up": _Column(_sum(Round.bytes_up), int),
        "bytes_down": _Column(_sum(Round.bytes_down), int),
    }


_PLACES = {state: place for place, state in enumerate(ExperimentState)}
"""States sort in the order in which an experiment comes to them."""


def _last(name: str) -> ColumnElement[Any]:
    values = select(Metric.value).where(Metric.experiment_id == Experiment.id, Metric.name == name)
    return values.order_by(Metric.round.desc()).limit(1).correlate(Experiment).scalar_subquery()


def _sum(column: Any) -> ColumnElement[Any]:
    total = select(cast(func.coalesce(func.sum(column), 0), BigInteger))
    return total.where(Round.experiment_id == Experiment.id).correlate(Experiment).scalar_subquery()


def _conditions(wanted: ExperimentFilter) -> Iterator[ColumnElement[bool]]:
    archived = Experiment.archived_at
    yield archived.is_not(None) if wanted.archived else archived.is_(None)
    if wanted.states:
        yield Experiment.state.in_(wanted.states)
    if wanted.name:
        yield Experiment.name.icontains(wanted.name, autoescape=True)
    if wanted.created_after is not None:
        yield Experiment.created_at >= wanted.created_after
    if wanted.created_before is not None:
        yield Experiment.created_at < wanted.created_before
    yield from map(tags.tagged, wanted.tags)
    for column in ("algorithm", "dataset", "project"):
        if value := getattr(wanted, column):
            yield getattr(Experiment, column) == value
