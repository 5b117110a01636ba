"""Metrics: one value per experiment, name and round; round 0 is the base model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Select, and_, func, select
from sqlalchemy.orm import Session, aliased

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.metrics import METRICS
from ferret_db.tables import Metric


class MetricSummary(NamedTuple):
    """The first, last and best value of a metric. ``best`` is None for metrics without a best round, such as bytes."""

    first: float
    last: float
    best: float | None


def add(s: Session, experiment_id: str, round: int, values: Mapping[str, float]) -> None:
    """Stores the round's values. Raises ``training.non_finite`` if a value is not a number."""
    for name, value in values.items():
        if not math.isfinite(value):
            raise FerretError.of_field("training.non_finite", f"round {round}: {name}", str(value), "is not finite")
    s.add_all(
        Metric(experiment_id=experiment_id, name=name, round=round, value=value) for name, value in values.items()
    )
    s.flush()


def by_round(s: Session, experiment_id: str, rounds: Sequence[int]) -> dict[int, dict[str, float]]:
    """Returns ``{round: {name: value}}`` for the rounds that have metrics."""
    query = select(Metric).where(Metric.experiment_id == experiment_id, Metric.round.in_(rounds)).order_by(Metric.name)
    found: dict[int, dict[str, float]] = {}
    for metric in s.scalars(query):
        found.setdefault(metric.round, {})[metric.name] = metric.value
    return found


def values(s: Session, experiment_id: str, name: str) -> dict[int, float]:
    """Returns ``{round: value}`` of one curve."""
    query = select(Metric.round, Metric.value).where(Metric.experiment_id == experiment_id, Metric.name == name)
    return dict(s.execute(query).all())


def summary(s: Session, experiment_ids: Sequence[str]) -> dict[str, dict[str, MetricSummary]]:
    """Returns ``{experiment: {name: summary}}`` without per-label metrics; empty for an experiment without metrics."""
    found: dict[str, dict[str, MetricSummary]] = {experiment_id: {} for experiment_id in experiment_ids}
    for experiment_id, name, summed in summaries(s, experiment_ids):
        found[experiment_id][name] = summed
    return found


def summaries(s: Session, among: Sequence[str] | Select[str]) -> Iterator[tuple[str, str, MetricSummary]]:
    """Yields experiment, metric name and summary, by name, without per-label metrics."""
    ends = (
        select(
            Metric.experiment_id,
            Metric.name,
            func.min(Metric.round).label("first"),
            func.max(Metric.round).label("last"),
            func.min(Metric.value).label("least"),
            func.max(Metric.value).label("greatest"),
        )
        .where(Metric.experiment_id.in_(among), ~Metric.name.contains("/"))
        .group_by(Metric.experiment_id, Metric.name)
        .subquery()
    )
    first, last = aliased(Metric), aliased(Metric)
    same = [and_(end.experiment_id == ends.c.experiment_id, end.name == ends.c.name) for end in (first, last)]
    rows = s.execute(
        select(ends.c.experiment_id, ends.c.name, first.value, last.value, ends.c.least, ends.c.greatest)
        .join(first, and_(same[0], first.round == ends.c.first))
        .join(last, and_(same[1], last.round == ends.c.last))
        .order_by(ends.c.name)
    )
    for experiment_id, name, start, end, least, greatest in rows:
        best = METRICS[name].best(least, greatest) if name in METRICS else None
        yield experiment_id, name, MetricSummary(start, end, best)
