"""``torchrun -m ferret_cli simulate``: its processes say what one process says."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.simulate import simulate
from tests import process_groups

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "ferret_cli"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "FERRET_DEVICE": "cpu", "PYTHONPATH": str(process_groups.ROOT)}
    command = [*TORCHRUN, "simulate", *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=process_groups.PATIENCE_SECONDS
    )


@pytest.mark.heavy
@pytest.mark.slow
def test_a_team_simulates_and_its_first_process_speaks(toy_spec: Callable[..., ExperimentSpec], tmp_path: Path) -> None:
    spec = toy_spec("fedavg", rounds=1, evaluation={"examples": 2, "generate_examples": 0})
    file = tmp_path / "spec.json"
    file.write_text(spec.model_dump_json())
    done = run(str(file), "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (0, f"{simulate(spec).digest}\n"), done.stderr
    assert done.stderr.count("1/1") == 1
    assert {"ferret.json", "model.safetensors", "README.md"} <= {path.name for path in (tmp_path / "out").iterdir()}
