"""``ferret tune`` with real trials: on a toy, in this process, as a process that is killed, and through a service."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import optuna
import pytest
from matplotlib import image

from ferret_cli import spec_input
from ferret_cli.tune.runner import runner_at
from ferret_cli.tune.study import FILE, LOCK, NAME
from ferret_core import catalog
from ferret_core.simulate import simulate
from ferret_sdk.participant.lock import sole
from tests.refusals import refused
from tests.shared_service import Served
from tests.tiers import slow

ROOT = Path(__file__).parents[3]
RATE = "algorithm.local.learning_rate = { log = [1e-4, 1e-1] }"
CLIP = "algorithm.local.clip_norm = { choice = [0.1, 1.0], unset = true }"
SERVER = "server.learning_rate = { choice = [%s] }"
Write = Callable[..., Path]


@pytest.fixture
def tune(ferret_in_process: Any, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Runs a study in the folder ``study`` and returns its document."""

    def run(file: Path, *arguments: str | Path, out: str = "study", code: int = 0) -> dict[str, Any]:
        done = ferret_in_process("tune", file, "--out", tmp_path / out, "--threads", "1", "--json", *arguments)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout) | {"said": done.stderr}

    return run


def essence(document: dict[str, Any]) -> list[Any]:
    """What two studies that are the same have in common: everything but which folder they are in."""
    return [{**trial, "failure": (trial["failure"] or {}).get("code")} for trial in document["trials"]]


def test_a_study_ends_with_its_best_trial_as_toml_table_and_plot(
    tune: Any, tune_file: Write, tmp_path: Path, ferret_in_process: Any
) -> None:
    file = tune_file("trials = 4", "seeds = 2", "pruner = 'none'", RATE, CLIP)
    found = tune(file)
    assert [trial["state"] for trial in found["trials"]] == ["complete"] * 4
    for trial in found["trials"]:
        first, second = trial["scores"]
        assert trial["value"] == fmean([first, second])
        assert trial["standard_error"] == pytest.approx(stdev([first, second]) / 2**0.5)
        assert trial["rounds"] == 6
    best = min(found["trials"], key=lambda trial: trial["value"])
    assert found["best"] == best["number"]

    chosen = spec_input.load(Path(found["files"]["toml"]))
    assert (chosen.seed, chosen.name, chosen.evaluation.split) == (5, "toy", "test")
    local = catalog.resolve(chosen).spec.algorithm.options["local"]
    assert local["learning_rate"] == best["values"]["algorithm.local.learning_rate"]
    clip = best["values"]["algorithm.local.clip_norm"]
    assert local["clip_norm"] == (None if clip == "unset" else float(clip))

    with Path(found["files"]["csv"]).open() as lines:
        rows = list(csv.DictReader(lines))
    assert [float(row["eval_loss"]) for row in rows] == [trial["value"] for trial in found["trials"]]
    assert [row["algorithm.local.clip_norm"] for row in rows] == [
        trial["values"]["algorithm.local.clip_norm"] for trial in found["trials"]
    ]
    assert image.imread(found["files"]["png"]).shape[1] == 1440

    shown = ferret_in_process("tune", file, "--out", tmp_path / "study")
    header, first, *_ = shown.stdout.splitlines()
    assert header.split() == ["trial", "eval_loss", "±", "s.e.", "learning_rate", "clip_norm", "rounds", "state"]
    assert first.split()[:3] == [str(best["number"]), f"{best['value']:.4f}", f"{best['standard_error']:.4f}"]
    assert len(shown.stdout.splitlines()) == 5


def test_a_value_is_the_mean_of_the_simulations_with_the_trials_seeds(
    tune: Any, tune_file: Write, tmp_path: Path
) -> None:
    found = tune(tune_file("trials = 1", "seeds = 2", RATE))
    best = spec_input.load(Path(found["files"]["toml"]))
    for seed, score in zip((1001, 1002), found["trials"][0]["scores"], strict=True):
        evaluation = best.evaluation.model_copy(update={"split": "validation"})
        run = simulate(best.model_copy(update={"seed": seed, "evaluation": evaluation}))
        assert run.rounds[-1].metrics["eval_loss"] == score


@pytest.mark.slow
def test_a_longer_budget_goes_on_and_repeats_nothing(tune: Any, tune_file: Write) -> None:
    file = tune_file("trials = 2", RATE)
    first = tune(file)
    again = tune(file)
    assert essence(again) == essence(first)
    assert "trial 1 of" not in again["said"]
    longer = tune(file, "--set", "tune.trials=3")
    assert essence(longer)[:2] == essence(first)
    assert len(longer["trials"]) == 3
    at_once = tune(file, "--set", "tune.trials=3", out="another")
    assert essence(at_once) == essence(longer)


def test_a_study_is_only_resumed_with_its_own_specification(tune: Any, tune_file: Write) -> None:
    file = tune_file("trials = 1", RATE)
    tune(file)
    refused = tune(file, "--set", "tune.algorithm.local.learning_rate.log=[1e-3, 1e-1]", "--set", "rounds=2", code=5)
    assert refused["code"] == "tune.changed"
    assert {wrong["field"]: (wrong["value"], wrong["message"]) for wrong in refused["errors"]} == {
        "rounds": (2, "was 3 when the study began"),
        "tune.algorithm.local.learning_rate.log": ([1e-3, 1e-1], "was [0.0001, 0.1] when the study began"),
    }
    added = tune(file, "--set", "tune.seeds=2", code=5)
    assert added["detail"] == "tune.seeds = 2: was not set when the study began"


def test_two_commands_do_not_run_one_study(tune: Any, tune_file: Write, tmp_path: Path) -> None:
    with sole(tmp_path / "study" / LOCK, "another"):
        refused = tune(tune_file("trials = 1", RATE), code=5)
    assert refused["code"] == "tune.in_use"
    assert f"process {os.getpid()}" in refused["detail"]


def test_the_search_is_imported_where_there_is_no_fcntl() -> None:
    program = "import sys; sys.modules['fcntl'] = None; import ferret_sdk.participant.lock, ferret_cli.tune.study"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "fcntl" not in done.stderr
    assert done.returncode == 0, done.stderr


def test_a_file_that_is_no_study_is_refused(tune: Any, tune_file: Write, tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / FILE).write_text("no database" * 100)
    refused = tune(tune_file("trials = 1", RATE), code=2)
    assert refused["errors"][0]["field"] == "--out"
    assert "choose another folder" in refused["detail"]


def test_a_bad_trial_is_pruned_after_its_first_round(tune: Any, tune_file: Write) -> None:
    rates = "algorithm.local.learning_rate = { choice = [1e-2, 2e-2, 1e-6] }"
    found = tune(tune_file("sampler = 'grid'", "startup_trials = 2", rates))
    assert [(trial["state"], trial["rounds"]) for trial in found["trials"]] == [
        ("complete", 3),
        ("complete", 3),
        ("pruned", 1),
    ]
    pruned = found["trials"][2]
    assert (pruned["value"], len(pruned["curve"])) == (None, 1)
    assert "trial 3 is pruned" in found["said"]


@pytest.mark.parametrize("pruner", ["halving", *slow("hyperband")])
def test_every_pruner_ends_trials_early(tune: Any, tune_file: Write, pruner: str) -> None:
    rates = "algorithm.local.learning_rate = { choice = [2e-2, 1e-6, 1e-7, 1e-8, 1e-9] }"
    found = tune(tune_file("sampler = 'grid'", f"pruner = '{pruner}'", rates))
    assert {trial["state"] for trial in found["trials"]} == {"complete", "pruned"}


def test_a_trial_that_diverges_fails_with_its_reason_and_the_study_goes_on(tune: Any, tune_file: Write) -> None:
    found = tune(tune_file("sampler = 'grid'", SERVER % "1e9, 1.0"))
    diverged, completed = found["trials"]
    assert (diverged["state"], diverged["failure"]["code"]) == ("failed", "round.diverged")
    assert (completed["state"], found["best"]) == ("complete", 2)
    assert "trial 1 failed" in found["said"]


def test_a_study_in_which_nothing_completes_says_why(tune: Any, tune_file: Write, tmp_path: Path) -> None:
    refused = tune(tune_file("sampler = 'grid'", SERVER % "1e9, 1e8"), code=1)
    assert refused["code"] == "tune.no_result"
    assert "none of 2 trials completed; the last that failed: round" in refused["detail"]
    assert not (tmp_path / "study" / "best.toml").exists()
    assert (tmp_path / "study" / "trials.png").exists()


def test_what_no_values_are_to_blame_for_ends_the_study_and_counts_for_nothing(
    tune: Any, tune_file: Write, tmp_path: Path
) -> None:
    refused = tune(tune_file("trials = 2", "metric = 'rouge_l'", RATE), code=2)
    assert refused["errors"][0] == {"field": "tune.metric", "value": "rouge_l"} | {
        "message": refused["errors"][0]["message"]
    }
    assert "evaluation.generate_examples" in refused["detail"]
    assert "0 of 2 trials have ended" in refused["said"]


@pytest.mark.slow
def test_the_best_is_confirmed_with_seeds_of_its_own_on_the_test_split(tune: Any, tune_file: Write) -> None:
    file = tune_file("trials = 1", RATE)
    found = tune(file, "--confirm", "2")
    confirmed = found["confirmed"]
    best = spec_input.load(Path(found["files"]["toml"]))
    assert confirmed["seeds"] == [5, 6]
    for seed, score in zip(confirmed["seeds"], confirmed["scores"], strict=True):
        assert simulate(best.model_copy(update={"seed": seed})).rounds[-1].metrics["eval_loss"] == score
    assert confirmed["value"] == fmean(confirmed["scores"])
    assert tune(file, "--confirm", "2")["said"].count("test split") == 0, "nothing is run again"
    refused = tune(file, "--set", "seed=1000", "--confirm", "2", out="another", code=2)
    assert "reaches seed 1001, which the trials ran with" in refused["detail"]


@contextmanager
def running(environment: Any, file: Path, out: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "ferret_cli", "tune", str(file), "--out", str(out), "--threads", "1", *more]
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    assert any(text in line for line in process.stderr), text


@pytest.mark.slow
def test_a_study_that_was_killed_ends_as_if_it_had_not_been(
    tune: Any, tune_file: Write, environment: Any, tmp_path: Path
) -> None:
    file = tune_file("trials = 6", "startup_trials = 2", RATE, CLIP)
    whole = tune(file, out="whole")
    for moment in ("trial 2 of 6", "2/3", "trial 4 of 6"):
        with running(environment, file, tmp_path / "study") as process:
            wait_for(process, moment)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    resumed = tune(file)
    assert essence(resumed) == essence(whole)
    assert resumed["best"] == whole["best"]
    database = optuna.load_study(study_name=NAME, storage=f"sqlite:///{tmp_path / 'study' / FILE}")
    assert len(database.get_trials(states=[optuna.trial.TrialState.FAIL])) == 3, "killed, and not counted"
    database._storage._backend.engine.dispose()


@pytest.mark.slow
def test_ctrl_c_leaves_files_and_says_how_to_go_on(
    tune: Any, tune_file: Write, environment: Any, tmp_path: Path
) -> None:
    file = tune_file("trials = 50", RATE)
    with running(environment, file, tmp_path / "study") as process:
        wait_for(process, "trial 3 of 50")
        deadline = time.monotonic() + 90
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(signal.SIGINT)  # again: Python drops one that comes while it frees something
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.returncode == 130, said
    ended = re.search(r"(\d+) of 50 trials have ended; the same command goes on from there", said)
    assert ended, said
    assert len((tmp_path / "study" / "trials.csv").read_text().splitlines()) == int(ended[1]) + 1
    assert spec_input.load(tmp_path / "study" / "best.toml").name == "toy"


@pytest.mark.slow
def test_a_service_gives_the_same_study_also_after_a_kill(
    tune: Any, tune_file: Write, served: Served, ferret: Any, environment: Any, tmp_path: Path
) -> None:
    rates = "algorithm.local.learning_rate = { choice = [1e-2, 2e-2, 1e-6] }"
    file = tune_file("sampler = 'grid'", "startup_trials = 2", rates)
    here = tune(file, out="here")
    with running(environment, file, tmp_path / "there", "--url", served.address) as process:
        wait_for(process, "trial 2 of 3")
        wait_for(process, "1/3")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    there = tune(file, "--url", served.address, out="there")
    assert essence(there) == essence(here)
    runs = [run for run in served.service.experiments() if run.name.startswith("toy, trial")]
    assert sorted(run.name for run in runs) == [f"toy, trial {number}, seed 1001" for number in (1, 2, 3)]
    pruned, _, first = runs
    assert first.state.value == "completed"
    assert served.service.experiment(first.id).specification().evaluation.split == "validation"
    assert pruned.state.value in {"cancelled", "completed"}, "it may have ended before"

    submitted = ferret("submit", there["files"]["toml"], "--watch", "--json", FERRET_URL=served.address)
    assert submitted.returncode == 0, submitted.stderr
    assert json.loads(submitted.stdout)["state"] == "completed"


@pytest.mark.slow
def test_a_service_runs_again_what_failed_before_it_was_recorded(
    toy_spec: Callable[..., Any], toy_data: tuple[Path, Path], served: Served, tmp_path: Path
) -> None:
    data = tmp_path / "late.jsonl"
    spec = toy_spec(rounds=1, dataset={"name": "jsonl", "train": str(data), "test": str(toy_data[1])})
    told: list[Any] = []
    run = runner_at(served.service, None)
    with refused("dataset.invalid"):
        run(spec, "late", told.append)
    data.write_text(toy_data[0].read_text())
    run(spec, "late", told.append)
    assert [line.number for line in told] == [0, 1]


def test_without_optuna_the_command_to_install_is_named(tmp_path: Path, environment: Any, tune_file: Write) -> None:
    program = tmp_path / "participant.py"
    program.write_text(
        """
import sys
from importlib.machinery import PathFinder

class Absent(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == "optuna" else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Absent
from ferret_cli.main import main
main()
"""
    )
    command = [sys.executable, program, "tune", tune_file(), "--json"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert done.returncode == 1
    assert json.loads(done.stdout)["code"] == "dependency.missing"
    assert "not installed: optuna" in done.stderr
    assert "[train,tune]" in done.stderr
