"""A real Trainer in a round: it moves the model the same way each time, and ends when the round does."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ferret_cli import hooks_file
from ferret_core.simulate import simulate
from ferret_core.training.custom_training import TrainingContext

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.heavy, pytest.mark.timeout(90)]


@pytest.fixture
def site() -> Any:
    return hooks_file.load(ROOT / "examples/site/hugging_face_trainer.py")


@pytest.mark.slow
def test_the_example_trains_and_gives_the_same_model_again(site: Any, toy_spec: Any) -> None:
    spec = toy_spec("fedavg", rounds=2, options={"local": {"steps": 3, "batch_size": 4, "learning_rate": 1e-2}})
    first = simulate(spec, site=site)
    random.seed(5)
    torch.manual_seed(5)
    assert simulate(spec, site=site).digest == first.digest != simulate(spec).digest
    losses = [done.metrics["train_loss"] for done in first.rounds[1:]]
    assert losses[1] < losses[0]


def test_a_lost_lease_ends_the_trainer_at_its_next_step(site: Any, toy_spec: Any) -> None:
    steps: list[int] = []

    def lost(step: int) -> None:
        steps.append(step)
        if step == 2:
            raise KeyError("the lease is lost")

    train = site.trains

    def train_until_lost(model: Any, examples: Any, context: TrainingContext) -> float:
        return train(model, examples, replace(context, step=lost))

    site.trains = train_until_lost
    spec = toy_spec("fedavg", rounds=1, options={"local": {"steps": 5}})
    with pytest.raises(KeyError, match="the lease is lost"):
        simulate(spec, site=site)
    assert steps == [1, 2]
