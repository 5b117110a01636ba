"""The curves of an experiment."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from ferret_api.auth import Viewer
from ferret_api.metrics import csv_table
from ferret_api.metrics.schemas import MetricSeries, MetricSeriesList
from ferret_api.problems import problems
from ferret_api.schemas import PREFIX, ExperimentId
from ferret_db.repositories import experiments, metrics

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/metrics", tags=["metrics"])


@router.get(
    "",
    operation_id="get_metrics",
    response_model=MetricSeriesList,
    responses={
        200: {
            "description": "As JSON, or with `Accept: text/csv` as a table",
            "content": {csv_table.MEDIA_TYPE: {"schema": {"type": "string"}}},
        },
        **problems("experiment.not_found"),
    },
)
def get_metrics(
    experiment_id: ExperimentId,
    request: Request,
    caller: Viewer,
    name: Annotated[str | None, Query(max_length=256, description="Only this metric, e.g. `eval_loss`")] = None,
) -> MetricSeriesList | Response:
    """Every metric over the rounds: losses, scores in percent, costs; docs/metrics.md says what each is.

    With `Accept: text/csv` one row for each round: `round`, `time`, `bytes_up_so_far` and a column for each metric.
    """
    with caller.database.read() as s:
        experiments.get(s, experiment_id)
        found = metrics.series(s, experiment_id, name)
        if csv_table.wanted(request.headers.get("accept", "")):
            return Response(csv_table.table(found), media_type=f"{csv_table.MEDIA_TYPE}; charset=utf-8")
        return MetricSeriesList(series=[MetricSeries.model_validate(series) for series in found])
