"""Every algorithm on every dataset, through the service: the model that the simulation ends with, bit for bit."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ferret_core import discovery
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.simulate import simulate
from ferret_db.repositories import metrics
from ferret_worker.settings import WorkerSettings

SpecFactory = Callable[..., ExperimentSpec]
Service = Any  # tests/worker/conftest.py
Sample = Any  # tests/conftest.py

FEDERATIONS: dict[str, dict[str, Any]] = {
    "codealpaca": {"partition": {"name": "natural"}, "participants": {"simulated": 3}},
    "dolly": {
        "partition": {"name": "dirichlet", "alpha": 0.5},
        "participants": {"simulated": 4, "fraction": 0.5},
    },
    "gsm8k": {"partition": {"name": "iid"}, "participants": {"simulated": 3}},
    "natural_instructions": {
        "partition": {"name": "natural"},
        "participants": {"simulated": 2, "fraction": 0.5},
    },
}
"""The paper's split of each dataset, over as many clients as the samples have; where it draws some, some are drawn."""


def pairs() -> Iterator[Any]:
    """All there are; in ``make test`` Ferret on every dataset: ``test_tasks.py`` has every algorithm on ``jsonl``."""
    for algorithm in discovery.names("ferret_core.algorithms"):
        for dataset in FEDERATIONS:
            usual = algorithm == "ferret"
            yield pytest.param(algorithm, dataset, marks=[] if usual else pytest.mark.slow)


@pytest.fixture
def settings(tmp_path: Path, migrated: Path) -> WorkerSettings:
    """SQLite alone: that both databases end alike is shown in ``test_tasks.py``."""
    home = tmp_path / "home"
    home.mkdir()
    shutil.copyfile(migrated, home / "ferret.db")
    return WorkerSettings(home=home)


@pytest.mark.parametrize(("algorithm", "dataset"), list(pairs()))
@pytest.mark.slow
def test_the_service_equals_the_simulation_on_the_papers_datasets(
    service: Service,
    toy_spec: SpecFactory,
    dataset_sample: Callable[[str, Path], Sample],
    tmp_path: Path,
    algorithm: str,
    dataset: str,
) -> None:
    spec = toy_spec(
        algorithm,
        options={"local": {"learning_rate": 1e-2, "steps": 2, "batch_size": 2, "accumulation": 1}},
        rounds=2,
        dataset={"name": dataset, **dataset_sample(dataset, tmp_path).options},
        evaluation={"every": 2, "examples": 4, "generate": 2, "max_new_tokens": 4},
        **FEDERATIONS[dataset],
    )
    oracle = simulate(spec)
    experiment_id = service.submit(spec)
    service.run()
    experiment = service.experiment(experiment_id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, oracle.digest)
    assert experiment.digest != experiment.base_digest
    with service.database.read() as s:
        recorded = metrics.by_round(s, experiment_id, [2])[2]
    assert {name: recorded[name] for name in oracle.rounds[2].metrics} == oracle.rounds[2].metrics


def test_settings_are_chosen_on_the_validation_split_by_evaluation_and_guard_alike(
    service: Service, toy_spec: SpecFactory, toy_data: tuple[Path, Path], tmp_path: Path
) -> None:
    spec = toy_spec(
        rounds=1,
        dataset={"name": "jsonl", "train": str(toy_data[0]), "test": str(tmp_path / "never-read.jsonl")},
        evaluation={"split": "validation", "examples": 6, "generate": 0},
    )
    oracle = simulate(spec)
    experiment_id = service.submit(spec)
    service.run()
    experiment = service.experiment(experiment_id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, oracle.digest)
    with service.database.read() as s:
        assert metrics.by_round(s, experiment_id, [1])[1]["eval_loss"] == oracle.rounds[1].metrics["eval_loss"]


def test_no_dataset_is_left_out() -> None:
    assert {*FEDERATIONS, "jsonl"} == set(discovery.names("ferret_core.datasets")), "jsonl is that of test_tasks.py"
