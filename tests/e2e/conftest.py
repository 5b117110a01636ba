"""Real participants of the served service."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Served = Any  # tests/served.py
STOP_SECONDS = 30


def join(served: Served, code: str, data: Path, home: Path) -> subprocess.Popen[bytes]:
    """A real participant as its owner starts it."""
    arguments = ["join", served.service.url, "--data", str(data), "--name", "hospital"]
    environment = os.environ | {"FERRET_CODE": code, "FERRET_HOME": str(home), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-m", "ferret_cli", *arguments], env=environment)


@pytest.fixture
def join_process() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts real participants and sees that none outlives its test."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*arguments: Any) -> subprocess.Popen[bytes]:
        started.append(join(*arguments))
        return started[-1]

    yield run
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.wait(STOP_SECONDS)
