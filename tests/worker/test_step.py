"""Guarded steps: the service makes the simulation's steps, also when another worker continues a round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.task_names import TaskName
from ferret_core.simulate import simulate
from ferret_db.repositories import ledger, metrics

SpecFactory = Callable[..., ExperimentSpec]
Service = Any  # tests/worker/conftest.py
MEASURED = (
    "step_taken",
    "noise_ratio",
    "development_loss",
    "eval_loss",
)

FRESH = [
    pytest.param(False, id="one worker", marks=pytest.mark.slow),
    pytest.param(True, id="a fresh one for every task"),
]


@pytest.fixture
def spec(toy_spec: SpecFactory) -> ExperimentSpec:
    """Each round leads too far."""
    server = {
        "step_guard": True,
        "max_loss_rise": 0,
        "development_examples": 4,
        "learning_rate": 64,
    }
    evaluation = {"split": "validation", "validation_share": 0.4, "examples": 8, "generate_examples": 0}
    return toy_spec(rounds=3, server=server, evaluation=evaluation)


def measured(service: Service, experiment_id: str) -> list[dict[str, float]]:
    with service.database.read() as s:
        found = metrics.by_round(s, experiment_id, range(4))
    return [{name: found[number][name] for name in MEASURED if name in found[number]} for number in range(4)]


@pytest.mark.parametrize("fresh", FRESH)
def test_the_service_takes_the_simulations_steps(service: Service, spec: ExperimentSpec, fresh: bool) -> None:
    experiment_id = service.submit(spec)
    while service.messages:
        if fresh and service.messages[0].task != TaskName.COORDINATE:
            service.context = service.new_context()
        service.step()
    done, simulated = service.experiment(experiment_id), simulate(spec)
    assert (done.state, done.digest) == (ExperimentState.COMPLETED, simulated.digest)
    expected = [{name: done.metrics[name] for name in MEASURED if name in done.metrics} for done in simulated.rounds]
    assert measured(service, experiment_id) == expected
    with service.database.read() as s:
        halvings = [entry.record["halvings"] for entry in ledger.after(s, experiment_id, 0, 10)]
    assert halvings == [record.halvings for record in simulated.ledger]
    assert halvings[0]
