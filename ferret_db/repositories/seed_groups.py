"""Groups of experiments that differ in the seed only, with joint results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session, defer

from ferret_core.protocol.states import ExperimentState
from ferret_db.pagination import Page, page_in, seek_in
from ferret_db.repositories import experiment_list, metrics
from ferret_db.repositories.experiment_list import ExperimentFilter, conditions
from ferret_db.repositories.rounds import TrafficTotals
from ferret_db.tables import Experiment, Round


@dataclass(frozen=True)
class SeedStatistics:
    """Statistics of ``count`` values. ``sd`` is the sample's (n - 1); a single value has none."""

    mean: float
    sd: float | None
    count: int


class MetricSpread(NamedTuple):
    """Statistics over the experiments that have the metric. ``best`` is None for metrics without a best round."""

    last: SeedStatistics
    best: SeedStatistics | None


class Group(NamedTuple):
    """A seed group. ``newest`` is its latest submitted experiment. Bytes are sums over its experiments."""

    key: str
    states: dict[ExperimentState, int]
    newest: Experiment
    metrics: dict[str, MetricSpread]
    sent: TrafficTotals


def list_page(s: Session, wanted: ExperimentFilter, limit: int, cursor: str | None, sort: str) -> Page[Group]:
    """Lists the groups that contain a ``wanted`` experiment, in the order of the column ``sort``.

    A group sorts by the mean of a metric, the sum of bytes, the last of times, and otherwise the minimum. Raises
    ``request.invalid`` for an unknown column and for a cursor of another order.
    """
    page = _keys(s, wanted, limit, cursor, sort)
    return Page(_groups(s, wanted, page.items), page.next_cursor)


def _keys(s: Session, wanted: ExperimentFilter, limit: int, cursor: str | None, sort: str) -> Page[str]:
    column = experiment_list.column(sort)
    members = select(Experiment.seed_group, column.value.label("member")).where(*conditions(wanted)).subquery()
    together = column.of_group(members.c.member).label("together")
    groups = select(members.c.seed_group, together).group_by(members.c.seed_group).subquery()
    order = experiment_list.order(sort, groups.c.together)
    query = seek_in(select(groups.c.seed_group), order, groups.c.seed_group, cursor, limit)
    return page_in(s.execute(query).all(), order, limit, id=str)


def _groups(s: Session, wanted: ExperimentFilter, keys: Sequence[str]) -> list[Group]:
    members = *conditions(wanted), Experiment.seed_group.in_(keys)
    states = _states(s, select(Experiment.seed_group, Experiment.state, func.count()).where(*members))
    newest = _newest(s, select(Experiment.id, Experiment.seed_group).where(*members))
    measured = _measured(s, select(Experiment.id, Experiment.seed_group).where(*members))
    sent = _sent(s, select(Experiment.id).where(*members))
    return [
        Group(key, states[key], newest[key], measured.get(key, {}), sent.get(key, TrafficTotals(0, 0)))
        for key in keys
        if key in states and key in newest  # leaves out groups that were deleted meanwhile
    ]


def _states(s: Session, counts: Select[str, ExperimentState, int]) -> dict[str, dict[ExperimentState, int]]:
    found: dict[str, dict[ExperimentState, int]] = {}
    for key, state, count in s.execute(counts.group_by(Experiment.seed_group, Experiment.state)):
        found.setdefault(key, {})[state] = count
    return found


def _newest(s: Session, members: Select[str, str]) -> dict[str, Experiment]:
    latest = Experiment.created_at.desc(), Experiment.id.desc()
    place = func.row_number().over(partition_by=Experiment.seed_group, order_by=latest)
    placed = members.add_columns(place.label("place")).subquery()
    query = select(Experiment).where(Experiment.id.in_(select(placed.c.id).where(placed.c.place == 1)))
    query = query.options(defer(Experiment.shapes), defer(Experiment.notes))
    return {row.seed_group: row for row in s.scalars(query)}


def _measured(s: Session, members: Select[str, str]) -> dict[str, dict[str, MetricSpread]]:
    groups = dict(s.execute(members).all())
    values: dict[str, dict[str, list[metrics.MetricSummary]]] = {}
    for experiment_id, name, summary in metrics.summaries(s, members.with_only_columns(Experiment.id)):
        values.setdefault(groups[experiment_id], {}).setdefault(name, []).append(summary)
    return {key: {name: _spread(found) for name, found in named.items()} for key, named in values.items()}


def _spread(found: Sequence[metrics.MetricSummary]) -> MetricSpread:
    best = [summary.best for summary in found if summary.best is not None]
    return MetricSpread(spread([summary.last for summary in found]), spread(best) if best else None)


def spread(values: Sequence[float]) -> SeedStatistics:
    """Computes the statistics of one or more values."""
    return SeedStatistics(fmean(values), stdev(values) if len(values) > 1 else None, len(values))


def _sent(s: Session, members: Select[str]) -> dict[str, TrafficTotals]:
    sums = (
        select(Experiment.seed_group, func.sum(Round.bytes_up), func.sum(Round.bytes_down))
        .join(Round, Round.experiment_id == Experiment.id)
        .where(Experiment.id.in_(members))
        .group_by(Experiment.seed_group)
    )
    return {key: TrafficTotals(int(up), int(down)) for key, up, down in s.execute(sums)}
