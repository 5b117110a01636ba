"""What the tutorials tell a newcomer to type, typed: their files, and their commands in order on a running service."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ferret_cli.main import app

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted(path.name for path in (ROOT / "docs/tutorials").glob("[!R]*.md"))
FILE = re.compile(r'^```\w+ title="(.+?)"\n(.*?)^```', re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ferret (.+)$", re.MULTILINE)
# One short round shows that a command works; the numbers printed in the tutorials come from whole runs.
ROUND = [
    "rounds=1",
    "algorithm.name=ferret",
    "algorithm.local.steps=1",
    "evaluation.examples=4",
    "evaluation.generate_examples=0",
]


@pytest.mark.slow
@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_every_command_of_a_tutorial_works(
    tutorial: str, served: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs/tutorials" / tutorial).read_text()
    for shared in ("examples", "ferret_core"):
        (tmp_path / shared).symlink_to(ROOT / shared)
    for name, content in FILE.findall(text):
        (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FERRET_HOME", str(served.home))
    experiment, code = "none was submitted", "none was listed"
    for command in COMMAND.findall(text):
        given = {"ID": experiment, "CODE_ID": code}
        arguments = [given.get(word, word) for word in shlex.split(shortened(command))]
        if arguments[0] == "join":
            break  # what follows needs two sites: test_experiment_participants.py has one
        if arguments[0] in {"serve", "doctor"}:
            continue  # the server runs already, and doctor says what this machine lacks
        run = CliRunner().invoke(app, arguments)
        assert run.exit_code == 0, f"ferret {command}: {run.exception or run.output}"
        experiment = next(iter(re.findall(r"exp_[0-9a-f]{16}", run.output)), experiment)
        code = next(iter(re.findall(r"enr_[0-9a-f]{16}", run.output)), code)


def shortened(command: str) -> str:
    """The same command with as little to compute as it allows."""
    overrides = " ".join(f"--set {value}" for value in ROUND) if command.startswith(("submit", "simulate")) else ""
    return re.sub(r"--rounds \d+", "--rounds 1", f"{command} {overrides}")
