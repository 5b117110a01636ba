"""MLflow, at the server of MLFLOW_TRACKING_URI or in a database in a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from ferret_core.protocol.states import ExperimentState
from ferret_sdk.exporters.base import finite, flat, required
from ferret_sdk.service.measured_rounds import MeasuredRound
from ferret_sdk.service.run import Run

PACKAGE = "ferret-participant[mlflow]"
DATABASE = "mlflow.db"
ID_TAG = "ferret.experiment"
STATUS = {ExperimentState.COMPLETED: "FINISHED", ExperimentState.FAILED: "FAILED", ExperimentState.CANCELLED: "KILLED"}
MOST_METRICS, MOST_PARAMETERS, LONGEST_PARAMETER = 1000, 100, 6000
"""Limits of one MLflow request."""
_NOT_IN_A_KEY = re.compile(r"[^\w\-. :/]")
_Item = TypeVar("_Item")


def open_destination(run: Run, folder: Path | None, project: str) -> MLflow:
    """Opens the experiment as a run of MLflow's experiment ``project``."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    address = None if folder is None else f"sqlite:///{folder.resolve() / DATABASE}"
    return MLflow(required("mlflow.tracking", PACKAGE).MlflowClient(tracking_uri=address), run, project)


class MLflow:
    """A run at the server of ``client``: the one with our experiment's id in a tag, or a new one."""

    def __init__(self, client: Any, run: Run, project: str) -> None:
        self._client, self._entities = client, required("mlflow.entities", PACKAGE)
        group = client.get_experiment_by_name(project)
        group_id: str = group.experiment_id if group else client.create_experiment(project)
        found: list[Any] = client.search_runs([group_id], f"tags.`{ID_TAG}` = '{run.id}'", max_results=1)
        self._known = set[str](found[0].data.metrics) if found else set[str]()
        self._id: str = found[0].info.run_id if found else self._create(run, group_id)
        self._steps = {key: self._written(key) for key in self._known}

    def rounds(self) -> frozenset[int]:
        """Returns all but the last, which may be incomplete."""
        steps = set[int]().union(*self._steps.values())
        return frozenset(steps - {max(steps, default=0)})

    def write(self, row: MeasuredRound) -> None:
        values = {key_of(name): value for name, value in finite(row).items()}
        metrics = [
            self._entities.Metric(key, value, _milliseconds(row.time), row.round)
            for key, value in values.items()
            if row.round not in self._steps.get(key, ())
        ]
        for batch in batches(metrics, MOST_METRICS):
            self._client.log_batch(self._id, metrics=batch)

    def close(self, state: ExperimentState) -> None:
        if state in STATUS:
            self._client.set_terminated(self._id, STATUS[state])

    def _create(self, run: Run, group_id: str) -> str:
        told = run.experiment
        tags = {ID_TAG: run.id, **{f"ferret.tag.{_NOT_IN_A_KEY.sub('_', tag)}": "true" for tag in told.tags}}
        start = _milliseconds(told.started_at or told.created_at)
        made: Any = self._client.create_run(group_id, start_time=start, tags=tags, run_name=told.name)
        parameters = [
            self._entities.Param(key_of(name), str(value)[:LONGEST_PARAMETER])
            for name, value in flat(told.spec).items()
        ]
        for batch in batches(parameters, MOST_PARAMETERS):
            self._client.log_batch(made.info.run_id, params=batch)
        return made.info.run_id

    def _written(self, key: str) -> set[int]:
        return {metric.step for metric in self._client.get_metric_history(self._id, key)}


def key_of(name: str) -> str:
    """Returns the name with only the characters that MLflow allows in keys."""
    return _NOT_IN_A_KEY.sub("_", name)


def batches(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)
