"""Endpoints for the metrics of an experiment."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from ferret_api.access import Viewer
from ferret_api.http.errors import problems
from ferret_api.schemas import MAX_INTEGER, PREFIX, ExperimentId
from ferret_core.protocol.resources.metrics import MetricSeriesList
from ferret_db.repositories import experiments, metric_series
from ferret_db.repositories.metric_series import MetricSeries

CSV = "text/csv"

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/metrics", tags=["metrics"])

MOST_POINTS = 2000
Name = Annotated[str | None, Query(max_length=256, description="Only this metric, e.g. `eval_loss`")]
Points = Annotated[
    int | None,
    Query(
        ge=1,
        le=MOST_POINTS,
        description="Maximum number of points per metric. With more rounds, each point covers a power of two of them "
        "and holds their minimum, mean and maximum. By default each round is one point",
    ),
]
First = Annotated[int | None, Query(alias="from", ge=0, le=MAX_INTEGER, description="First round to include")]
Last = Annotated[int | None, Query(alias="to", ge=0, le=MAX_INTEGER, description="Last round to include")]


@router.get(
    "",
    operation_id="get_metrics",
    response_model=MetricSeriesList,
    responses={
        200: {
            "description": "As JSON, or with `Accept: text/csv` as a table",
            "content": {CSV: {"schema": {"type": "string"}}},
        },
        **problems("experiment.not_found"),
    },
)
def get_metrics(
    experiment_id: ExperimentId,
    request: Request,
    caller: Viewer,
    name: Name = None,
    points: Points = None,
    first: First = None,
    last: Last = None,
) -> MetricSeriesList | Response:
    """Returns every metric by round: losses, scores in percent, costs. docs/researchers/metrics.md defines them.

    With `Accept: text/csv` the response is a table with one row per round: `round`, `time`, `bytes_up_so_far` and one
    column per metric. Requires the role viewer.
    """
    with caller.database.read() as s:
        experiments.get(s, experiment_id)
        found = metric_series.curves(s, experiment_id, name, points, metric_series.RoundWindow(first, last))
    accepted = request.headers.get("accept", "").split(",")
    if any(part.partition(";")[0].strip().lower() == CSV for part in accepted):
        return Response(_csv_table(found.series), media_type=f"{CSV}; charset=utf-8")
    return MetricSeriesList.model_validate(found)


def _csv_table(found: Sequence[MetricSeries]) -> str:
    """Returns the table as text.

    ``time`` is the time of the round's last value, and ``bytes_up_so_far`` the bytes that all participants had sent by
    then. The cell of a missing metric is empty."""
    rows: dict[int, dict[str, Any]] = {}
    for series in found:
        for point in series.points:
            row = rows.setdefault(point.round, {"round": point.round, "time": point.time, "bytes_up_so_far": 0})
            row["time"] = max(row["time"], point.time)
            row["bytes_up_so_far"] = max(row["bytes_up_so_far"], point.bytes_up)
            row[series.name] = point.value
    text = StringIO()
    writer = csv.DictWriter(text, ["round", "time", "bytes_up_so_far", *(series.name for series in found)])
    writer.writeheader()
    writer.writerows({**rows[number], "time": rows[number]["time"].isoformat()} for number in sorted(rows))
    return text.getvalue()
