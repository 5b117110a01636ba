from __future__ import annotations

import os

from ferret_cli import demo
from ferret_cli.demo import document, summary
from ferret_cli.stack.home_lock import locked
from ferret_core import sample
from ferret_core.protocol.resources.experiments import Experiment
from ferret_sdk.http.transport import Transport
from ferret_sdk.service.run import Run
from tests import documents
from tests.refusals import refused


def test_the_experiment_uses_the_generated_data_and_one_real_participant(tmp_path, monkeypatch):
    monkeypatch.setenv("FERRET_DEMO_MODEL", "set by the demo")
    monkeypatch.setenv("FERRET_DEMO_DATA", "set by the demo")
    folder = demo.write_data(tmp_path)
    spec = demo.experiment_spec(folder)
    assert spec.participants.edge == 1
    assert spec.model.source == str(sample.model_path())
    assert spec.dataset.options["train"] == str(folder / "train.jsonl")
    assert (folder / "edge.jsonl").is_file()


def test_the_last_demos_folder_is_emptied(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "old.jsonl").touch()
    (tmp_path / "ferret.db").touch()
    demo.fresh_home(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["serve.lock"]


def test_a_demo_that_still_runs_is_left_alone(ferret, tmp_path):
    home = tmp_path / ".ferret" / "demo"
    with locked(home):
        (home / "ferret.db").touch()
        with refused("home.in_use"):
            demo.fresh_home(home)
        done = ferret("demo", "--once", "--json")
    assert done.returncode == 5
    assert str(home) in done.stderr
    assert (home / "ferret.db").exists()


def test_the_demo_keeps_out_of_an_installation_in_use(monkeypatch):
    monkeypatch.setenv("FERRET_DATABASE_URL", "postgresql://production/ferret")
    monkeypatch.setenv("FERRET_BROKER_URL_FILE", "/run/secrets/broker")
    monkeypatch.setenv("FERRET_EXPECTED_PARTICIPANTS", "9")
    demo.own_environment()
    assert "FERRET_DATABASE_URL" not in os.environ
    assert "FERRET_BROKER_URL_FILE" not in os.environ
    assert os.environ["FERRET_EXPECTED_PARTICIPANTS"] == "9"


def test_the_result_of_an_experiment_that_failed_early(monkeypatch):
    experiment = Experiment.model_validate(
        documents.experiment(id="exp_0000000000000001", state="failed", rounds=10, round=0, participants=5, metrics={})
    )
    run = Run(Transport("http://127.0.0.1:1"), experiment)
    monkeypatch.setattr(Run, "rounds", lambda self: iter(()))
    result = document(run, None, 1.26)
    assert result == {
        "id": "exp_0000000000000001",
        "state": "failed",
        "rounds": 0,
        "eval_loss": {"first": None, "last": None},
        "rouge_l": {"first": None, "last": None},
        "bytes_up": 0,
        "bytes_down": 0,
        "seconds": 1.3,
        "checkpoint": None,
        "digest": None,
    }
    assert summary(result) == "exp_0000000000000001 is failed after 1.3 s"
