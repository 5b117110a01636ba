from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferret_sdk.exporters import export_metrics
from ferret_sdk.exporters.mlflow import key_of
from ferret_sdk.service.run import Run
from tests.ferret_sdk.exporters.conftest import VALUES

pytestmark = pytest.mark.heavy


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """MLflow's own client of a store in a folder."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path}")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("DO_NOT_TRACK", "true")
    from mlflow.tracking import MlflowClient

    return MlflowClient()


def runs(client: Any, project: str = "ferret") -> list[Any]:
    return client.search_runs([client.get_experiment_by_name(project).experiment_id])


def test_every_round_is_there_once_though_the_export_was_stopped(run: Run, interrupted: Any, client: Any) -> None:
    interrupted(run, "mlflow")
    (found,) = runs(client)
    points = {
        name: [(point.step, point.value) for point in client.get_metric_history(found.info.run_id, key_of(name))]
        for name in VALUES
    }
    assert {name: sorted(values) for name, values in points.items()} == {
        name: sorted(values.items()) for name, values in VALUES.items()
    }
    assert found.info.status == "FINISHED"


def test_parameters_tags_and_times_are_there(run: Run, client: Any) -> None:
    export_metrics(run, "mlflow", project="mine")
    (found,) = runs(client, "mine")
    assert found.info.run_name == "renamed"
    assert found.data.params["algorithm.local.learning_rate"] == "0.001"
    assert found.data.tags["ferret.experiment"] == run.id
    assert found.data.tags["ferret.tag.K search"] == "true"
    assert client.get_metric_history(found.info.run_id, "train_loss")[0].timestamp == 1767225603000


def test_names_have_what_mlflow_allows() -> None:
    assert key_of("rouge_l/was ist 2+2?") == "rouge_l/was ist 2_2_"
