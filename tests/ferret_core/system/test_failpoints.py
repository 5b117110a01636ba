"""The points that stand in the code are the points that can be armed, and an armed one ends the process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ferret_core.system import failpoints
from tests.refusals import refused

ROOT = Path(__file__).parents[3]
PACKAGES = ("ferret_core", "ferret_db", "ferret_sdk", "ferret_cli", "api", "worker")


def run(code: str, setting: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, failpoints.VARIABLE: setting}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_every_point_stands_in_the_code_and_in_the_list() -> None:
    sources = [path.read_text() for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    found = {name for source in sources for name in re.findall(r'failpoint\("([^"]+)"\)', source)}
    assert found == set(failpoints.NAMES)
    assert len(failpoints.NAMES) == len(found)


@pytest.mark.heavy
def test_the_process_dies_at_the_hit_that_was_asked_for() -> None:
    code = """
from ferret_core.system.failpoints import failpoint
for hit in range(1, 5):
    failpoint("storage.synced")
    failpoint("storage.renamed")
    print(hit, flush=True)
"""
    for hit in (1, 3):
        died = run(code, f"storage.synced:{hit}")
        assert died.returncode == -signal.SIGKILL
        assert died.stdout.split() == [str(n) for n in range(1, hit)]
    assert run(code, "").stdout.split() == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    "setting", ["storage.nowhere:1", "storage.synced", "storage.synced:0", "storage.synced:x", ":1"]
)
def test_a_setting_that_arms_nothing_is_refused(setting: str) -> None:
    with refused("settings.invalid", "FERRET_FAILPOINT", "storage.synced"):
        failpoints.arm(setting)
