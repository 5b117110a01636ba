"""``ferret experiment export-metrics`` on a real server: a table, and a tool that is followed and left by Ctrl-C."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from ferret_core.protocol.spec import ExperimentSpec

Ferret = Callable[..., subprocess.CompletedProcess[str]]  # tests/ferret_cli/conftest.py
Served = Any  # tests/shared_service.py
MANY = 500
"""Rounds that do not end while a process starts."""


@pytest.fixture
def home(served: Served) -> Path:
    """The commands find the server by its home."""
    return served.home


def table(text: str) -> dict[int, dict[str, float]]:
    """The metrics of the CSV by round; what was not measured is left out."""
    rows = {int(row["round"]): row for row in csv.DictReader(text.splitlines())}
    return {
        number: {name: float(value) for name, value in row.items() if value and name != "time"}
        for number, row in rows.items()
    }


def drawn(folder: Path, name: str) -> dict[int, float]:
    """A curve as TensorBoard draws it; a step that is there twice fails."""
    found = EventAccumulator(str(folder))
    found.Reload()
    points = [(point.step, point.value) for point in found.Scalars(name)]
    assert len(points) == len(dict(points)), f"{name} has a step twice"
    return dict(points)


def test_a_tool_is_followed_left_by_ctrl_c_and_has_every_round_once_in_the_end(
    ferret_in_process: Ferret,
    served: Served,
    toy_spec: Callable[..., ExperimentSpec],
    environment: Callable[..., dict[str, str]],
    tmp_path: Path,
) -> None:
    run = served.service.submit(toy_spec(name="exported", rounds=MANY))
    export = ["experiment", "export-metrics", run.id, "--to", "tensorboard", "--dir", str(tmp_path / "runs")]
    command = [sys.executable, "-m", "ferret_cli", *export]
    with subprocess.Popen(command, env=environment(), cwd=tmp_path, stderr=subprocess.PIPE, text=True) as exporting:
        assert exporting.stderr is not None
        said = ""
        while "round 1\n" not in said:
            said += (line := exporting.stderr.readline())
            assert line, said
        exporting.send_signal(signal.SIGINT)
        said += exporting.stderr.read()
    assert exporting.returncode == 130, said
    assert "Ctrl-C stops the export and not the experiment" in said
    assert run.refresh().state == "running"
    run.cancel()

    again = ferret_in_process(*export, "--json")
    assert again.returncode == 0, again.stderr
    printed = ferret_in_process("experiment", "export-metrics", run.id).stdout
    rows = table(printed)
    first = {line for line in said.splitlines() if line.startswith("round ")}
    then = {line for line in again.stderr.splitlines() if line.startswith("round ")}
    assert json.loads(again.stdout) == {"id": run.id, "to": "tensorboard", "rounds": len(then)}
    assert not first & then
    assert first | then == {f"round {number}" for number in rows}
    (folder,) = (tmp_path / "runs" / "ferret").iterdir()
    for name in ("train_loss", "eval_loss"):
        assert drawn(folder, name) == pytest.approx({n: row[name] for n, row in rows.items() if name in row})
    document = json.loads(ferret_in_process("experiment", "export-metrics", run.id, "--json").stdout)
    assert document == {"id": run.id, "csv": printed}


def test_a_folder_that_is_a_file_and_a_tool_that_there_is_none_of_are_told(
    ferret_in_process: Ferret, served: Served, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    for wrong in (["--to", "tensorbord"], ["--to", "tensorboard", "--dir", str(tmp_path / "file")]):
        refused = ferret_in_process("experiment", "export-metrics", "latest", *wrong)
        assert refused.returncode == 2
        assert Path(wrong[-1]).name in refused.stderr
    unknown = ferret_in_process("experiment", "export-metrics", "exp_0000000000000000")
    assert (unknown.returncode, unknown.stdout) == (3, "")
