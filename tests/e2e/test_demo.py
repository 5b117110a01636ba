"""What ``make demo ARGS="--once --json"`` promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ferret_core import manifest_reader


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_the_demo_learns_and_ends_with_one_document(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ferret_cli", "demo", "--once", "--json", "--home", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout.splitlines()[-1])
    assert set(result) == {
        *("id", "state", "rounds", "eval_loss", "rouge_l"),
        *("bytes_up", "bytes_down", "seconds", "checkpoint", "digest"),
    }
    assert (result["state"], result["rounds"]) == ("completed", 12)
    assert result["rouge_l"]["last"] - result["rouge_l"]["first"] >= 20
    assert result["eval_loss"]["last"] < result["eval_loss"]["first"]
    assert 8_192 < result["bytes_up"] < 10_000
    assert manifest_reader.checked(Path(result["checkpoint"])).digest == result["digest"]
