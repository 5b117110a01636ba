"""The list of experiments: what it tells of each."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from sqlalchemy.orm import Session

from ferret_api.experiments.schemas import ExperimentPage, ListedExperiment
from ferret_core.protocol.states import ExperimentState
from ferret_db import tables
from ferret_db.database import Database
from ferret_db.engine import progress
from ferret_db.repositories import listing, metrics, rounds, tags
from ferret_db.repositories.listing import ExperimentFilter

_COLUMNS = ListedExperiment.model_fields.keys() & set(tables.Experiment.__table__.columns.keys())


class _Beside(NamedTuple):
    """What other tables hold of the experiments of one page, by their ids."""

    tags: dict[str, list[str]]
    metrics: dict[str, dict[str, metrics.MetricSummary]]
    sent: dict[str, rounds.Bytes]
    seconds: dict[str, float]


def list_page(
    database: Database, wanted: ExperimentFilter, sort: str, limit: int, cursor: str | None
) -> ExperimentPage:
    """One page; ``request.invalid`` for a column that there is none of, and for another list's cursor."""
    with database.read() as s:
        page = listing.list_page(s, wanted, limit, cursor, sort)
        ids = [row.id for row in page.items]
        sent, seconds = rounds.bytes_by_experiment(s, ids), rounds.seconds_of_recent(s, ids)
        beside = _Beside(tags.of(s, ids), metrics.summary(s, ids), sent, seconds)
        return ExperimentPage(items=[_item(s, row, beside) for row in page.items], next_cursor=page.next_cursor)


def _item(s: Session, row: tables.Experiment, beside: _Beside) -> ListedExperiment:
    stall, sent = progress.stall(s, row), beside.sent[row.id]
    return ListedExperiment.model_validate(
        {
            **{name: getattr(row, name) for name in _COLUMNS},
            **_options(row.spec),
            "tags": beside.tags[row.id],
            "stalled": stall and stall.code,
            "metrics": beside.metrics[row.id],
            "bytes_up": sent.up,
            "bytes_down": sent.down,
            "estimated_seconds_left": None if stall else _seconds_left(row, beside.seconds.get(row.id)),
        }
    )


def _options(spec: dict[str, Any]) -> dict[str, Any]:
    """What people compare experiments by; null where the algorithm has no such option, or another in its place."""
    algorithm = cast(dict[str, Any], spec["algorithm"])
    return {
        "seed": spec["seed"],
        "K": algorithm.get("K"),
        "bytes_per_round": algorithm.get("bytes_per_round"),
        "learning_rate": algorithm.get("local", {}).get("learning_rate"),
    }


def _seconds_left(row: tables.Experiment, each: float | None) -> float | None:
    if row.state != ExperimentState.RUNNING or each is None:
        return None
    return each * (row.rounds - row.round)
