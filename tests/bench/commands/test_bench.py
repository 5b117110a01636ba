from __future__ import annotations

import json
import subprocess
import sys

import pytest

SMALL = {"OMP_NUM_THREADS": "1", "FERRET_KERNEL": "reference"}
"""Tests run beside each other, and should not wait for a compiler."""


@pytest.mark.slow
def test_one_document_on_stdout_and_progress_on_stderr(ferret):
    done = ferret("dev", "bench", "projection", "--quick", "--json", **SMALL)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["benchmark"] == "projection"
    assert document["asked"] == {"bounds": False, "quick": True, "max_seconds": 600}
    assert document["threads"] == 1
    assert document["bounds"]
    assert "measuring t_speedup" in done.stderr


def test_an_unknown_benchmark_is_wrong_usage_that_names_those_there_are(ferret_in_process):
    done = ferret_in_process("dev", "bench", "sing")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "sing" in done.stderr
    assert "projection" in done.stderr


def test_an_experiment_is_only_for_a_benchmark_that_measures_one(ferret_in_process, tmp_path):
    done = ferret_in_process("dev", "bench", "projection", str(tmp_path / "experiment.toml"), "--quick")
    assert done.returncode == 2
    assert "projection measures no experiment" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("noise", "--set", "rounds=3"), "changes the experiment in FILE"),
        (("edge", "--secure", "--set", "rounds=3"), "changes the experiment in FILE"),
        (("edge", "experiment.toml", "--secure"), "edge measures no experiment"),
        (("noise", "--secure"), "noise has no secure sums"),
    ],
)
def test_an_argument_that_would_be_ignored_is_refused(ferret_in_process, arguments, said):
    done = ferret_in_process("dev", "bench", *arguments, "--quick")
    assert done.returncode == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())


def test_help_of_the_commands_and_its_names_are_read_without_what_they_measure_with():
    program = """
import sys

import pytest
from typer.testing import CliRunner
from ferret_cli.main import app
for words in (["--help"], ["bench", "--help"], ["paper", "table", "--help"], ["paper", "figure", "--help"]):
    words = ["dev", *words]
    assert CliRunner().invoke(app, words).exit_code == 0
print(sorted({"torch", "numpy", "matplotlib", "httpx", "transformers"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
