from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.simulate import simulate
from tests.ferret_core import manifest_reader
from tests.refusals import refused

EXAMPLES = Path(__file__).parents[2] / "examples"
SpecFactory = Callable[..., ExperimentSpec]
Served = Any  # tests/shared_service.py


def ferret(served: Served, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The ``ferret`` command against the served service."""
    command = [sys.executable, "-m", "ferret_cli", *arguments]
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH")}  # the toy algorithm is a plug-in there
    environment = {**kept, "FERRET_HOME": str(served.home), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_submitted_over_http_it_equals_the_simulation_and_loads_with_transformers(
    served: Served, toy_spec: SpecFactory, tmp_path: Path
) -> None:
    torch.set_num_threads(1)
    spec = toy_spec()
    run = served.service.submit(spec).wait(timeout=180)
    assert run.experiment.digest == simulate(spec).digest
    folder = run.export(tmp_path / "checkpoint")
    assert manifest_reader.checked(folder).digest == run.experiment.digest
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    answer = model.generate(**tokenizer("Repeat.", return_tensors="pt"), max_new_tokens=3, do_sample=False)
    assert answer.shape[1] > 3
    types = [event.type for event in run.events()]
    assert types[0] == "experiment.queued"
    assert types[-1] == "experiment.completed"
    assert types.count("round.committed") == 3
    assert len(run.metrics()["eval_loss"]) == 4


@pytest.mark.slow
def test_the_readmes_commands_run_the_example(served: Served, tmp_path: Path) -> None:
    example = str(EXAMPLES / "quickstart.toml")
    submitted = ferret(served, "submit", example, "--watch", "--json", "--set", "rounds=2")
    assert submitted.returncode == 0, submitted.stderr
    experiment_id = json.loads(submitted.stdout.splitlines()[-1])["id"]
    shown = json.loads(ferret(served, "experiment", "show", experiment_id, "--json").stdout)
    assert (shown["state"], shown["round"]) == ("completed", 2)
    assert shown["metrics"]["eval_loss"]["last"] < shown["metrics"]["eval_loss"]["first"]
    verified = ferret(served, "experiment", "verify", experiment_id, "--json")
    assert verified.returncode == 0, verified.stderr
    exported = ferret(served, "experiment", "export", experiment_id, str(tmp_path / "tuned-model"))
    assert exported.returncode == 0, exported.stderr
    assert manifest_reader.checked(tmp_path / "tuned-model").digest == shown["digest"]
    assert experiment_id in ferret(served, "experiment", "list", "--json").stdout
    simulated = ferret(served, "simulate", example, "--json", "--threads", "1", "--set", "rounds=2")
    assert json.loads(simulated.stdout)["digest"] == shown["digest"]


@pytest.mark.slow  # `ferret join` takes part in tests/ferret_cli/commands/test_experiment_participants.py too
def test_a_real_participant_trains_beside_the_simulated_clients(
    served: Served, toy_spec: SpecFactory, toy_data: tuple[Path, Path], tmp_path: Path, join_process: Any
) -> None:
    run = served.service.submit(toy_spec(participants={"simulated": 2, "edge": 1}))
    code = served.service.enrolment(run.id).code
    process = join_process(served, code, toy_data[0], tmp_path / "hospital")
    run.wait(timeout=180)
    assert process.wait(30) == 0
    reports = list(run.contributions())
    assert {(item.participant, item.kind, item.state) for item in reports} == {
        ("client-001", "simulated", "accepted"),
        ("client-002", "simulated", "accepted"),
        ("hospital", "edge", "accepted"),
    }
    assert len(reports) == 9
    verified = ferret(served, "experiment", "verify", run.id)
    assert verified.returncode == 0, verified.stderr


def test_what_is_wrong_is_said_at_once_or_fails_the_run_with_its_reason(served: Served, toy_spec: SpecFactory) -> None:
    wrong = toy_spec().model_dump(mode="json")
    with refused("spec.invalid", "algorithm.K") as caught:
        served.service.submit(wrong | {"algorithm": {"name": "ferret", "K": 0}})
    assert caught.value.errors[0].field == "algorithm.K"
    run = served.service.submit(toy_spec(model={"source": "/not/a/model"}))
    with refused("model.invalid", "/not/a/model"):
        run.wait(timeout=60)


def test_a_cancelled_run_stops(served: Served, toy_spec: SpecFactory) -> None:
    run = served.service.submit(toy_spec(rounds=200))
    run.cancel()
    assert run.refresh().state == ExperimentState.CANCELLED
    with refused("experiment.conflict", "cancelled"):
        run.wait(timeout=10)
