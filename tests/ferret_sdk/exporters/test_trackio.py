from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ferret_sdk.service.run import Run
from tests.ferret_sdk.exporters.conftest import VALUES

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(not find_spec("trackio"), reason="trackio is not in the lock: pip install trackio to run this"),
]
READ = """
import json, sys, trackio
from trackio.sqlite_storage import SQLiteStorage
logs = SQLiteStorage.get_logs("ferret", sys.argv[1])
print(json.dumps([logs, SQLiteStorage.get_run_config("ferret", sys.argv[1])], default=str))
"""


def test_every_round_is_there_once_though_the_export_was_stopped(
    run: Run, interrupted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    assert interrupted(run, "trackio", tmp_path) == [2, 0]
    done = subprocess.run(
        [sys.executable, "-c", READ, run.id], env={**os.environ, "TRACKIO_DIR": str(tmp_path)}, capture_output=True
    )
    rows, config = json.loads(done.stdout)
    for name, points in VALUES.items():
        assert sorted((row["step"], row[name]) for row in rows if name in row) == sorted(points.items())
    assert config["algorithm.local.learning_rate"] == 1e-3
    assert config["experiment"] == "renamed"
