"""The curves of an experiment."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from ferret_api.auth import Viewer
from ferret_api.metrics.schemas import MetricSeries, MetricSeriesList
from ferret_api.problems import problems
from ferret_api.schemas import PREFIX, ExperimentId
from ferret_db.repositories import experiments, metrics

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/metrics", tags=["metrics"])


@router.get("", operation_id="get_metrics", responses=problems("experiment.not_found"))
def get_metrics(
    experiment_id: ExperimentId,
    caller: Viewer,
    name: Annotated[str | None, Query(max_length=256, description="Only this metric, e.g. `eval_loss`")] = None,
) -> MetricSeriesList:
    """Every metric over the rounds: losses, scores in percent, costs; docs/metrics.md says what each is."""
    with caller.database.read() as s:
        experiments.get(s, experiment_id)
        found = metrics.series(s, experiment_id, name)
        return MetricSeriesList(series=[MetricSeries.model_validate(series) for series in found])
