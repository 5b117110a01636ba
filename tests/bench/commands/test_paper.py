"""``ferret dev paper …`` as a process."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from matplotlib import image
from typer.testing import CliRunner

from ferret_bench.reproduce.reconstruction import plots
from ferret_cli.main import app
from ferret_core.protocol.errors import FerretError

DOCUMENT = Path(__file__).parents[3] / "docs/results/reconstruction.md"
SPEED = {"OMP_NUM_THREADS": "1"}


@pytest.mark.slow
def test_the_documented_command_prints_one_document_of_files_and_what_they_say(ferret, tmp_path):
    (shown,) = re.findall(r"^ferret (dev paper .*)$", DOCUMENT.read_text(), re.MULTILINE)
    arguments = shown.replace("docs/results/reconstruction", str(tmp_path / "figures")).split()
    done = ferret(*arguments, "--quick", **SPEED)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["quick"] is True
    assert [figure["name"] for figure in document["figures"]] == list(plots(quick=True))
    for figure in document["figures"]:
        picture = image.imread(figure["png"])
        assert picture.shape[:2] == (720, 1280)
        assert len(set(picture.reshape(-1, picture.shape[2]).sum(1))) > 20, "an empty picture"
        assert list(csv.DictReader(Path(figure["csv"]).read_text().splitlines()))
        assert figure["numbers"]
        assert all(math.isfinite(number) for number in figure["numbers"].values())
        assert figure["png"] in done.stderr


def test_a_file_is_no_place_for_figures(ferret_in_process, tmp_path):
    (tmp_path / "taken").touch()
    done = ferret_in_process("dev", "paper", "reconstruction", "--out", tmp_path / "taken", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["code"] == "request.invalid"
    assert "choose another" in done.stderr


def rerun(out: Path, model: Path, data: Path, *more: str) -> list[str]:
    """A table of two rows with one seed on the toy task, seconds each."""
    quick = {
        "rounds": "3",
        "participants.simulated": "2",
        "evaluation.max_new_tokens": "8",
        "algorithm.local.steps": "2",
    }
    given = {"--model": str(model), "--data": str(data), "--datasets": "jsonl", "--algorithms": "ferret,fedavg"}
    scaled = {"--seeds": "1", "--examples": "4", "--generate": "2"}
    words = [word for pair in (given | scaled).items() for word in pair]
    assigned = [word for name, value in quick.items() for word in ("--set", f"{name}={value}")]
    return ["dev", "paper", "table", "codealpaca_gsm8k", "--out", str(out), *words, *assigned, *more]


def runs(out: Path) -> list[dict[str, Any]]:
    file = out / "runs.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.slow
def test_a_table_is_run_through_a_service_of_its_own_and_goes_on_where_it_was_interrupted(
    tmp_path, environment, ferret, broker, tiny_model_dir, toy_data
):
    out = tmp_path / "table"
    words = rerun(out, tiny_model_dir, toy_data[0].parent)
    with (tmp_path / "said").open("w") as said:
        command = [sys.executable, "-m", "ferret_cli", *words]
        run = subprocess.Popen(command, env=environment(**SPEED), stdout=subprocess.DEVNULL, stderr=said)
        deadline = time.monotonic() + 90
        while not runs(out) and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == 130, (tmp_path / "said").read_text()
    (first,) = runs(out)
    assert "1 of 2 runs have not ended yet" in (out / "codealpaca_gsm8k.md").read_text()
    assert not (out / ".ferret" / "server.json").exists()

    done = ferret(*words, "--json", **SPEED)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 runs have ended already" in done.stderr
    document = json.loads(done.stdout)
    assert (document["runs"], document["failed"]) == (2, [])
    assert [row["row"] for row in document["rows"]] == ["ferret", "fedavg"]
    kept = runs(out)
    assert kept[0] == first
    assert all(Path(file).stat().st_size for file in document["files"].values())

    alone = ferret(*rerun(tmp_path / "alone", tiny_model_dir, toy_data[0].parent, "--simulate"), **SPEED)
    assert alone.returncode == 0, alone.stderr
    assert [run["digest"] for run in runs(tmp_path / "alone")] == [run["digest"] for run in kept]
    for here, there in zip(runs(tmp_path / "alone"), kept, strict=True):
        assert [done["metrics"]["eval_loss"] for done in (here["rounds"][0], here["rounds"][-1])] == [
            done["metrics"]["eval_loss"] for done in (there["rounds"][0], there["rounds"][-1])
        ]


@pytest.mark.slow
def test_a_run_that_is_on_disk_when_the_command_is_interrupted_is_on_the_page(
    tmp_path, tiny_model_dir, toy_data, monkeypatch
):
    def interrupted(_: int) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    CliRunner().invoke(app, rerun(tmp_path / "table", tiny_model_dir, toy_data[0].parent, "--simulate"))
    assert len(runs(tmp_path / "table")) == 1
    assert "1 of 2 runs have not ended yet" in (tmp_path / "table" / "codealpaca_gsm8k.md").read_text()


@pytest.mark.slow
def test_a_table_is_run_through_a_service_that_runs_already_and_its_token_is_not_shown(
    tmp_path, served, tiny_model_dir, toy_data, monkeypatch
):
    token, url = (served.home / "admin.token").read_text().strip(), served.service.url
    words = rerun(tmp_path / "table", tiny_model_dir, toy_data[0].parent, "--url", url, "--token", token)
    monkeypatch.setattr(sys, "argv", ["ferret", *words])
    done = CliRunner().invoke(app, [*words, "--together", "2"])
    assert done.exit_code == 0, done.stderr
    assert {run["via"] for run in runs(tmp_path / "table")} == {url}
    written = [path for path in (tmp_path / "table").rglob("*") if path.is_file()]
    assert [path.name for path in written if token.encode() in path.read_bytes()] == []


def test_a_run_that_fails_is_told_by_the_exit_code(tmp_path, tiny_model_dir, toy_data):
    words = rerun(tmp_path / "table", tiny_model_dir, toy_data[0].parent, "--simulate", "--json")
    done = CliRunner().invoke(app, [*words, "--set", "ferret.algorithm.bytes_per_round=40"])
    assert done.exit_code == 1
    document = json.loads(done.stdout)
    assert [failed["error"]["code"] for failed in document["failed"]] == ["spec.invalid"]
    assert "--retry" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["table", "nothing", "--model", "m"], "choose one of codealpaca_gsm8k, cost, memory, ni_dolly"),
        (["figure", "cost", "--model", "m"], "choose one of allocation, blocks, chat_model, "),
        (["table", "cost"], "--model"),
        (["table", "cost", "--shape", "huge"], "HIDDEN/LAYERS"),
    ],
)
def test_what_cannot_be_run_is_refused(tmp_path, words, said):
    error = CliRunner().invoke(app, ["dev", "paper", *words, "--out", str(tmp_path / "out")]).exception
    assert isinstance(error, FerretError)
    assert error.problem.exit == 2
    assert said in error.detail
