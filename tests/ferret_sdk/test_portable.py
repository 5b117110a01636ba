"""Participants and researchers also use Windows, which lacks POSIX's own modules."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import ferret_sdk

POSIX_ONLY = ("fcntl", "grp", "pwd", "resource", "termios")
SDK = [module.name for module in pkgutil.walk_packages(ferret_sdk.__path__, "ferret_sdk.")]
PARTICIPANT = ["ferret_core.participant", "ferret_core.replica", "ferret_core.simulate", "ferret_cli.joining"]


@pytest.mark.heavy
def test_the_sdk_and_all_that_a_participant_runs_are_imported_without_posix() -> None:
    program = f"""
import importlib, sys
sys.modules.update(dict.fromkeys({POSIX_ONLY}))
for name in {["ferret_sdk", *SDK, *PARTICIPANT, "ferret_cli.main"]}:
    importlib.import_module(name)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert {"ferret_sdk.service", "ferret_sdk.participant"} <= set(SDK)
