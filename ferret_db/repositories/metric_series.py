"""Curves downsampled by the database: one point per bucket of rounds.

A bucket holds a power of two of rounds, counted from round 1. Round 0, the base model, has a separate bucket. So a
growing run keeps its buckets until there are too many; then each two neighbours are merged.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from sqlalchemy import BigInteger, ColumnElement, Subquery, and_, case, cast, func, select
from sqlalchemy.orm import Session

from ferret_db.tables import Metric, Round

GREATEST = sys.float_info.max


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """A bucket's values: their number ``count``, their mean ``value``, the ``least`` and the ``greatest``.

    ``first`` and ``round`` are the first and the last round with a value. ``time`` is when the last was measured, and
    ``bytes_up`` what all participants had sent by its end. ``lost`` counts non-finite values; if all are, the others
    are None.
    """

    first: int
    round: int
    value: float | None
    least: float | None
    greatest: float | None
    count: int
    lost: int
    time: datetime
    bytes_up: int


class MetricSeries(NamedTuple):
    name: str
    points: list[SeriesPoint]


class MetricSeriesList(NamedTuple):
    """Curves by name. ``rounds_per_point`` is the number of rounds per bucket."""

    rounds_per_point: int
    series: list[MetricSeries]


class RoundWindow(NamedTuple):
    """Rounds ``first`` to ``last``, both inclusive; None is unbounded."""

    first: int | None = None
    last: int | None = None


EVERYTHING = RoundWindow()


def curves(
    s: Session, experiment_id: str, name: str | None = None, points: int | None = None, window: RoundWindow = EVERYTHING
) -> MetricSeriesList:
    """Returns the curve ``name``, or all by name, with at most ``points`` points each (None: one per round)."""
    size = _size(s, experiment_id, points, window)
    found, sent = _buckets(experiment_id, name, size, window), _sent(experiment_id)
    rows = s.execute(
        select(found, func.coalesce(sent.c.bytes_up, 0))
        .outerjoin(sent, sent.c.number == found.c.round)
        .order_by(found.c.name, found.c.round)
    )
    series = [
        MetricSeries(name, [SeriesPoint(*row[1:]) for row in points])
        for name, points in groupby(rows, lambda row: row[0])
    ]
    return MetricSeriesList(size, series)


def bucket_size(first: int, last: int, points: int) -> int:
    """Returns the smallest power of two of rounds that gives ``first`` … ``last`` at most ``points`` buckets."""
    size = 1
    while _bucket(last, size) - _bucket(first, size) >= points and size <= last:
        size *= 2
    return size


def _bucket(round_: int, size: int) -> int:
    return (round_ + size - 1) // size


def _size(s: Session, experiment_id: str, points: int | None, window: RoundWindow) -> int:
    if points is None:
        return 1
    ends = func.coalesce(func.min(Metric.round), 0), func.coalesce(func.max(Metric.round), 0)
    bounds = select(*ends).where(_within(experiment_id, None, window))
    first, last = s.execute(bounds).one()
    return bucket_size(first, last, points)


def _within(experiment_id: str, name: str | None, window: RoundWindow) -> ColumnElement[bool]:
    conditions = [Metric.experiment_id == experiment_id]
    if name is not None:
        conditions.append(Metric.name == name)
    if window.first is not None:
        conditions.append(Metric.round >= window.first)
    if window.last is not None:
        conditions.append(Metric.round <= window.last)
    return and_(*conditions)


def _buckets(experiment_id: str, name: str | None, size: int, window: RoundWindow) -> Subquery:
    """Selects the buckets.

    PostgreSQL sorts NaN above every number, SQLite stores it as NULL; comparing with both bounds excludes it on either.
    The sum of values beyond a bucket's share of the range could overflow: such values count as infinite.
    """
    most = GREATEST / size
    finite = case((Metric.value.between(-most, most), Metric.value))
    count = func.count(finite)
    return (
        select(
            Metric.name,
            func.min(Metric.round).label("first"),
            func.max(Metric.round).label("round"),
            func.avg(finite).label("value"),
            func.min(finite).label("least"),
            func.max(finite).label("greatest"),
            count.label("count"),
            (func.count() - count).label("lost"),
            func.max(Metric.created_at).label("time"),
        )
        .where(_within(experiment_id, name, window))
        .group_by(Metric.name, (Metric.round + (size - 1)) // size)
        .subquery()
    )


def _sent(experiment_id: str) -> Subquery:
    total = func.sum(func.sum(Round.bytes_up)).over(order_by=Round.number)
    return (
        select(Round.number, cast(total, BigInteger).label("bytes_up"))
        .where(Round.experiment_id == experiment_id)
        .group_by(Round.number)
        .subquery()
    )
