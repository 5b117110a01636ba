"""The demo experiment: a valid specification under which the base model learns new tasks from few bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from operator import eq
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import pytest

from ferret_cli.simulation_output import facts
from ferret_core import catalog
from ferret_core.protocol.ids import SIMULATION
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica import checkpoint
from ferret_core.replica.export import complete
from ferret_core.replica.replica import Replica
from ferret_core.sample import model_path
from ferret_core.sample.tasks import KNOWN, write
from ferret_core.simulate import SimulationResult, simulate

DEMO = model_path().parent / "demo.toml"
ASKED = 40
PROGRAM = """
import json, sys
from transformers import AutoModelForCausalLM, AutoTokenizer

model, tokenizer = (each.from_pretrained(sys.argv[1]) for each in (AutoModelForCausalLM, AutoTokenizer))
said = []
for row in json.load(sys.stdin):
    messages = [{"role": "system", "content": row["input"]}, {"role": "user", "content": row["instruction"]}]
    tokens = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True, return_tensors="pt")
    answer = model.generate(**tokens, max_new_tokens=20, do_sample=False)
    said.append(tokenizer.decode(answer[0, tokens["input_ids"].shape[1] :], skip_special_tokens=True).strip())
assert not any(name.startswith("ferret") for name in sys.modules)
json.dump(said, sys.stdout)
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("data")
    write(folder)
    filled = Template(DEMO.read_text()).substitute(FERRET_DEMO_MODEL=str(model_path()), FERRET_DEMO_DATA=str(folder))
    return tomllib.loads(filled)


def test_it_is_a_valid_experiment_with_real_participants(demo: dict[str, Any]) -> None:
    spec = catalog.resolve(ExperimentSpec.model_validate(demo)).spec
    assert spec.participants.simulated >= 2
    assert spec.participants.edge == 1


class Half(NamedTuple):
    """Half of the demo without its edge: what was measured, and the folders of the tuned and the base model."""

    result: SimulationResult
    tuned: Path
    base: Path


@pytest.fixture(scope="module")
def half(demo: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Half:
    wanted = {
        **demo,
        "rounds": demo["rounds"] // 2,
        "participants": {**demo["participants"], "edge": 0},
        "evaluation": {**demo["evaluation"], "every": demo["rounds"]},
    }
    spec, folder = ExperimentSpec.model_validate(wanted), tmp_path_factory.mktemp("models")
    base, tuned = folder / "base", folder / "tuned-model"
    checkpoint.write_folder(Replica.load(catalog.resolve(spec).spec), SIMULATION, base)
    result = simulate(spec, tuned)
    for model in (base, tuned):
        complete(model, facts(spec, result))
    return Half(result, tuned, base)


@pytest.mark.slow
def test_half_of_it_without_the_edge_already_raises_rouge_l_by_twenty_points(half: Half) -> None:
    first, *between, last = half.result.rounds
    assert last.metrics["rouge_l"] >= first.metrics["rouge_l"] + 20
    assert last.metrics["eval_loss"] < first.metrics["eval_loss"] / 2
    assert all(result.bytes_up <= 4 * 10_000 for result in [*between, last])


@pytest.mark.slow
def test_its_exported_model_answers_more_held_out_tasks_than_the_base_by_transformers_alone(
    half: Half, demo: dict[str, Any]
) -> None:
    lines = Path(demo["dataset"]["test"]).read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["label"] not in {*KNOWN, "zib"}][:ASKED]
    right = {model: sum(map(eq, answers(model, rows), [row["output"] for row in rows])) for model in half[1:]}
    assert right[half.tuned] >= right[half.base] + ASKED // 4


def answers(model: Path, rows: list[dict[str, str]]) -> list[str]:
    """What the model in the folder says to each row, asked by its own chat template in a process without Ferret."""
    command = [sys.executable, "-c", PROGRAM, str(model)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # no plug-ins of tests
    done = subprocess.run(command, env=environment, input=json.dumps(rows), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
