"""The demo experiment: a valid specification under which the base model learns new tasks from few bytes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from string import Template
from typing import Any

import pytest

from ferret_core import catalog
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.sample import model_path, quickstart
from ferret_core.sample.tasks import write
from ferret_core.simulate import simulate

EXAMPLES = Path(__file__).parents[3] / "examples"
DEMO = model_path().parent / "demo.toml"


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


def test_the_quickstart_is_the_example() -> None:
    example = tomllib.loads((EXAMPLES / "quickstart.toml").read_text())
    for section, field in (("model", "source"), ("dataset", "train")):
        example[section][field] = str((EXAMPLES / example[section][field]).resolve())
    assert quickstart() == example


@pytest.mark.slow
def test_half_of_it_without_the_edge_already_raises_rouge_l_by_twenty_points(demo: dict[str, Any]) -> None:
    wanted = {
        **demo,
        "rounds": demo["rounds"] // 2,
        "participants": {**demo["participants"], "edge": 0},
        "evaluation": {**demo["evaluation"], "every": demo["rounds"]},
    }
    first, *between, last = simulate(ExperimentSpec.model_validate(wanted)).rounds
    assert last.metrics["rouge_l"] >= first.metrics["rouge_l"] + 20
    assert last.metrics["eval_loss"] < first.metrics["eval_loss"] / 2
    assert all(result.bytes_up <= 4 * 10_000 for result in [*between, last])
