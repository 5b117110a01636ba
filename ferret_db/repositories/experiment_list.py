"""The list of experiments: filters and order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session, defer

from ferret_core.protocol.states import ExperimentState
from ferret_db.pagination import Page
from ferret_db.repositories import experiment_sorting, tags
from ferret_db.sorting import page_in, seek_in
from ferret_db.tables import Experiment

NEWEST_FIRST = "-created"


class ExperimentFilter(NamedTuple):
    """A filter. ``name`` is any part of the name, in any case. No states means all; with several tags all must match.

    ``archived`` selects archived experiments instead of all others. Times are from ``created_after`` (inclusive) to
    ``created_before`` (exclusive), so adjacent spans share no experiment. Experiments of one ``seed_group`` differ in
    the seed only.
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


def list_page(
    s: Session, wanted: ExperimentFilter, limit: int, cursor: str | None = None, sort: str = NEWEST_FIRST
) -> Page[Experiment]:
    """Lists experiments in the order of the column ``sort``. A minus before its name means descending.

    Raises ``request.invalid`` for an unknown column and for a cursor of another order.
    """
    order = experiment_sorting.order(sort)
    query = select(Experiment).where(*conditions(wanted)).options(defer(Experiment.shapes), defer(Experiment.notes))
    return page_in(s.execute(seek_in(query, order, Experiment.id, cursor, limit)).all(), order, limit)


def bytes_per_upload(s: Session, experiment_ids: Sequence[str]) -> dict[str, float]:
    """Returns the mean upload size in bytes of each experiment's last committed round, where there is one."""
    query = select(Experiment.id, experiment_sorting.bytes_per_upload()).where(Experiment.id.in_(experiment_ids))
    return {experiment_id: each for experiment_id, each in s.execute(query) if each is not None}


def conditions(wanted: ExperimentFilter) -> Iterator[ColumnElement[bool]]:
    """Yields the conditions of the filter."""
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
    for column in ("algorithm", "dataset", "project", "seed_group"):
        if value := getattr(wanted, column):
            yield getattr(Experiment, column) == value
