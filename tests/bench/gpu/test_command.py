"""``python -m ferret_bench.gpu`` where there is no GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so_and_names_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ferret_bench.gpu", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "There is no GPU here" in done.stderr
    assert "run `make gpu`" in done.stderr
    assert not (tmp_path / "out").exists()
