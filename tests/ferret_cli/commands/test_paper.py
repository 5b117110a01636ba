"""``ferret paper reconstruction`` as a process."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from matplotlib import image

from ferret_cli.paper.reconstruction import plots

DOCUMENT = Path(__file__).parents[3] / "docs/results/reconstruction.md"
SPEED = {"OMP_NUM_THREADS": "1"}


def test_the_documented_command_prints_one_document_of_files_and_what_they_say(ferret, tmp_path):
    (shown,) = re.findall(r"^ferret (paper .*)$", DOCUMENT.read_text(), re.MULTILINE)
    arguments = shown.replace("docs/results/reconstruction", str(tmp_path / "figures")).split()
    done = ferret(*arguments, "--quick", **SPEED)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["quick"] is True
    assert [figure["name"] for figure in document["figures"]] == list(plots(quick=True))
    for figure in document["figures"]:
        assert image.imread(figure["png"]).shape[1] == 1280
        assert list(csv.DictReader(Path(figure["csv"]).read_text().splitlines()))
        assert figure["numbers"]
        assert figure["png"] in done.stderr


def test_an_interrupted_run_leaves_whole_files_alone(tmp_path, environment):
    out = tmp_path / "figures"
    command = [sys.executable, "-m", "ferret_cli", "paper", "reconstruction", "--out", str(out)]
    run = subprocess.Popen(command, env=environment(**SPEED), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (out / "rho.png").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    run.send_signal(signal.SIGINT)
    assert run.wait(60) == 130
    assert {path.name for path in out.iterdir()} == {"rho.png", "rho.csv"}
    assert image.imread(out / "rho.png").shape[1] == 1280


def test_a_file_is_no_place_for_figures(ferret, tmp_path):
    (tmp_path / "taken").touch()
    done = ferret("paper", "reconstruction", "--out", tmp_path / "taken", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["code"] == "request.invalid"
    assert "choose another" in done.stderr


def test_without_matplotlib_the_command_to_install_is_named(tmp_path, environment):
    program = tmp_path / "participant.py"
    program.write_text(
        """
import sys
from importlib.machinery import PathFinder

class Absent(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == "matplotlib" else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Absent
from ferret_cli.main import main
main()
"""
    )
    command = [sys.executable, program, "paper", "reconstruction", "--out", tmp_path / "figures", "--json"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert done.returncode == 1
    assert json.loads(done.stdout)["code"] == "setup.missing"
    assert "matplotlib is not installed" in done.stderr
    assert "[train,paper]" in done.stderr
    assert not (tmp_path / "figures").exists()
