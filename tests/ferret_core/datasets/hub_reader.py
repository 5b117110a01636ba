"""Reads datasets from a stand-in for the hub in a fresh process: the hub's settings are fixed when it is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = """
import importlib, json, sys
from ferret_core.protocol.errors import FerretError
module = importlib.import_module(f"ferret_core.datasets.{sys.argv[1]}")
for options in json.loads(sys.argv[2]):
    try:
        dataset = module.Dataset(module.Config(**options))
        print(json.dumps([dataset.train(), dataset.test()]))
    except FerretError as error:
        print(json.dumps(error.to_json()))
"""


def read(name: str, endpoint: str, home: Path, *options: dict[str, str]) -> list[Any]:
    """For each of ``options`` the dataset's training and test examples, or its error, as JSON."""
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_OFFLINE": "0", "NO_PROXY": "*"}
    command = [sys.executable, "-c", PROGRAM, name, json.dumps(options)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
