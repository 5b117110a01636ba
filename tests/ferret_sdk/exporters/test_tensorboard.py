from __future__ import annotations

from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2

from ferret_sdk.exporters import export_metrics
from ferret_sdk.exporters.tensorboard import rounds_in
from ferret_sdk.service.run import Run
from tests.ferret_sdk.exporters.conftest import VALUES
from tests.refusals import refused


def read(folder: Path) -> EventAccumulator:
    found = EventAccumulator(str(folder))
    found.Reload()
    return found


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    found: Any = read(folder)
    return {tag: sorted((point.step, point.value) for point in found.Scalars(tag)) for tag in found.Tags()["scalars"]}


def test_every_round_is_there_once_though_the_export_was_stopped(run: Run, interrupted: Any, tmp_path: Path) -> None:
    assert interrupted(run, "tensorboard", tmp_path) == [2, 0]
    (folder,) = (tmp_path / "ferret").iterdir()
    assert folder.name == f"Übung-1-{run.id}"
    assert curves(folder) == {name: sorted(points.items()) for name, points in VALUES.items()}


def test_time_is_the_rounds_own_and_parameters_are_there(run: Run, tmp_path: Path) -> None:
    export_metrics(run, "tensorboard", str(tmp_path), project="mine")
    (folder,) = (tmp_path / "mine").iterdir()
    found = read(folder)
    assert found.Scalars("train_loss")[0].wall_time == 1767225603.0
    content = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    plugin: Any = plugin_data_pb2  # its messages are made when it is imported
    told = plugin.HParamsPluginData.FromString(content).session_start_info.hparams
    assert told["algorithm.local.learning_rate"].number_value == 1e-3
    assert told["dataset.shares"].string_value == "[0.5, 0.5]"
    assert told["tags"].string_value == "K search"


def test_a_record_that_was_cut_off_is_written_again(run: Run, tmp_path: Path) -> None:
    export_metrics(run, "tensorboard", tmp_path)
    (folder,) = (tmp_path / "ferret").iterdir()
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes()[:-10])
    assert rounds_in(folder) == {0, 1, 2, 3}
    assert export_metrics(run, "tensorboard", tmp_path) == 1
    assert curves(folder)["eval_loss"] == [(0, 3.0), (2, 2.0), (4, 1.0)]


def test_a_folder_that_cannot_be_written_is_told(run: Run, tmp_path: Path) -> None:

    (tmp_path / "ferret").write_text("in the way")
    with refused("export.failed"):
        export_metrics(run, "tensorboard", tmp_path)
