"""Lists of experiments and of experiment groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from sqlalchemy.orm import Session

from ferret_core.protocol.resources.experiments import (
    ExperimentGroup,
    ExperimentGroupPage,
    ExperimentPage,
    ListedExperiment,
    MetricStatistics,
)
from ferret_db import tables
from ferret_db.database import Database
from ferret_db.engine import stalls
from ferret_db.repositories import experiment_list, experiments, metrics, rounds, seed_groups
from ferret_db.repositories.experiment_list import ExperimentFilter

_COLUMNS = ListedExperiment.model_fields.keys() & set(tables.Experiment.__table__.columns.keys())


class _Related(NamedTuple):
    tags: dict[str, list[str]]
    metrics: dict[str, dict[str, metrics.MetricSummary]]
    sent: dict[str, rounds.TrafficTotals]
    left: dict[str, float]
    uploads: dict[str, float]


def list_page(
    database: Database, wanted: ExperimentFilter, stalled: bool, sort: str, limit: int, cursor: str | None
) -> ExperimentPage:
    """Returns one page; raises ``request.invalid`` for an unknown column, or a cursor of another list."""
    with database.read() as s:
        page = experiment_list.list_page(s, _narrowed(s, wanted, stalled), limit, cursor, sort)
        return ExperimentPage(items=_items(s, page.items), next_cursor=page.next_cursor)


def group_page(
    database: Database, wanted: ExperimentFilter, stalled: bool, sort: str, limit: int, cursor: str | None
) -> ExperimentGroupPage:
    """Returns one page; raises ``request.invalid`` for an unknown column, or a cursor of another list."""
    with database.read() as s:
        page = seed_groups.list_page(s, _narrowed(s, wanted, stalled), limit, cursor, sort)
        newest = _items(s, [group.newest for group in page.items])
        items = [_group(group, item) for group, item in zip(page.items, newest, strict=True)]
        return ExperimentGroupPage(items=items, next_cursor=page.next_cursor)


def _narrowed(s: Session, wanted: ExperimentFilter, stalled: bool) -> ExperimentFilter:
    """Returns the filter, limited to stalled experiments if ``stalled``: no column says which have stalled."""
    if not stalled:
        return wanted
    return wanted._replace(ids=[row.id for row in experiments.unfinished(s) if stalls.stall(s, row)])


def _group(group: seed_groups.Group, newest: ListedExperiment) -> ExperimentGroup:
    return ExperimentGroup(
        key=group.key,
        count=sum(group.states.values()),
        states=group.states,
        metrics={name: MetricStatistics.model_validate(found) for name, found in group.metrics.items()},
        bytes_up=group.sent.up,
        bytes_down=group.sent.down,
        newest=newest,
    )


def _items(s: Session, rows: Sequence[tables.Experiment]) -> list[ListedExperiment]:
    ids = [row.id for row in rows]
    sent, left = rounds.bytes_by_experiment(s, ids), experiment_list.seconds_left_of(s, ids)
    related = _Related(
        experiments.tags_of(s, ids), metrics.summary(s, ids), sent, left, experiment_list.bytes_per_upload(s, ids)
    )
    return [_item(s, row, related) for row in rows]


def _item(s: Session, row: tables.Experiment, related: _Related) -> ListedExperiment:
    stall, sent = stalls.stall(s, row), related.sent[row.id]
    return ListedExperiment.model_validate(
        {
            **{name: getattr(row, name) for name in _COLUMNS},
            **_options(row.spec),
            "tags": related.tags[row.id],
            "stalled": stall and stall.code,
            "metrics": related.metrics[row.id],
            "bytes_up": sent.up,
            "bytes_down": sent.down,
            "bytes_per_upload": related.uploads.get(row.id),
            "estimated_seconds_left": None if stall else related.left.get(row.id),
        }
    )


def _options(spec: dict[str, Any]) -> dict[str, Any]:
    """Returns options that people compare between experiments; null for options that the algorithm does not have."""
    algorithm = cast(dict[str, Any], spec["algorithm"])
    return {
        "seed": spec["seed"],
        "K": algorithm.get("K"),
        "bytes_per_round": algorithm.get("bytes_per_round"),
        "learning_rate": algorithm.get("local", {}).get("learning_rate"),
    }
