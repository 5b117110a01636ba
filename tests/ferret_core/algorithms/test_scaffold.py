from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ferret_core.algorithms import fedavg, scaffold
from ferret_core.models.parameters import trainable
from ferret_core.protocol.wire import Arrays
from ferret_core.simulate import simulate
from ferret_core.training.config import LocalConfig
from tests.ferret_core.replicas import SpecFactory

LOCAL = LocalConfig(optimizer="sgd", learning_rate=0.05, steps=10)
CURVATURES, TARGETS = (1.0, 8.0), (0.0, 1.0)
"""Participant i's loss is ½ aᵢ ‖w − bᵢ‖²; their sum is least at Σ aᵢ bᵢ / Σ aᵢ."""
OPTIMUM = 8 / 9


def descend(participant: int, optimizer: type[torch.optim.Optimizer] = torch.optim.SGD) -> Callable[..., None]:
    """Local steps on participant i's loss, as ``train`` makes them."""

    def train(model: nn.Module, *, config: LocalConfig, on_step: Callable[[int], None] | None, **_: Any) -> None:
        parameters = list(trainable(model).values())
        stepping = optimizer(parameters, lr=config.learning_rate)  # pyrefly: ignore[missing-argument, unexpected-keyword]
        for step in range(1, config.steps + 1):
            for parameter in parameters:
                parameter.grad = CURVATURES[participant] * (parameter.detach() - TARGETS[participant])
            stepping.step()
            if on_step is not None:
                on_step(step)

    return train


def run(
    lab: Any,
    model: Any,
    algorithm: Any,
    rounds: int,
    sampled: Sequence[Sequence[int]] = ((0, 1),),
    counts: Sequence[float] = (1.0, 1.0),
    **how: Any,
) -> tuple[Arrays, list[Arrays]]:
    """State and memories after rounds in which ``sampled`` take turns; ``counts`` are the participants' weights."""
    state: Arrays = algorithm.init_state(model, 0)
    memories: list[Arrays] = [{}, {}]
    for number in range(rounds):
        names = sampled[number % len(sampled)]
        own, shares = [memories[i] for i in names], [counts[i] for i in names]
        steps = [descend(i, **how) for i in names]
        done = lab.round(algorithm, model, steps, state=state, memories=own, weights=shares, population=2)
        state = done.state
        for i, memory in zip(names, done.memories, strict=True):
            memories[i] = memory
    return state, memories


def test_it_reaches_the_optimum_that_fedavg_drifts_away_from(lab: Any, weights: Any) -> None:
    dense, controlled = weights((3,)), weights((3,))
    run(lab, dense, fedavg.Algorithm(fedavg.Config(local=LOCAL)), 100)
    run(lab, controlled, scaffold.Algorithm(scaffold.Config(local=LOCAL)), 100)
    assert abs(dense.flat[0] - OPTIMUM) > 0.1
    np.testing.assert_allclose(controlled.flat, OPTIMUM, atol=1e-3)


def test_weights_by_examples_move_the_optimum_and_the_control_variate(lab: Any, weights: Any) -> None:
    model = weights((3,))
    algorithm = scaffold.Algorithm(scaffold.Config(local=LOCAL))
    state, memories = run(lab, model, algorithm, 100, counts=(3.0, 1.0))
    np.testing.assert_allclose(model.flat, 8 / 11, atol=1e-3)
    mean = (3 * memories[0]["control"] + memories[1]["control"]) / 4
    np.testing.assert_allclose(state["control"], mean, atol=1e-5)


@pytest.mark.parametrize("sampled", [((0, 1),), ((0,), (1,), (0, 1))])
def test_the_servers_control_variate_is_the_mean_of_the_participants(
    lab: Any, weights: Any, sampled: Sequence[Sequence[int]]
) -> None:
    state, memories = run(lab, weights((3,)), scaffold.Algorithm(scaffold.Config(local=LOCAL)), 3, sampled)
    mean = (memories[0]["control"] + memories[1]["control"]) / 2
    assert np.abs(mean).max() > 0.01
    np.testing.assert_allclose(state["control"], mean, rtol=1e-5, atol=1e-6)


def test_a_participants_control_variate_is_its_mean_gradient(lab: Any, weights: Any) -> None:
    model, algorithm = weights((3,)), scaffold.Algorithm(scaffold.Config(local=LOCAL.model_copy(update={"steps": 2})))
    state = {"control": np.full(3, 0.5, np.float32)}
    memory = {"control": np.full(3, 0.25, np.float32)}
    item = lab.participate(algorithm, model, state, descend(0), memory, population=4)
    # w: 1 → 1 − 0.05·1 − 0.05·(0.5 − 0.25) = 0.9375; gradients 1 and 0.9375
    np.testing.assert_allclose(item.memory["control"], (1 + 0.9375) / 2, rtol=1e-5)
    np.testing.assert_allclose(item.contribution.arrays["control"], ((1 + 0.9375) / 2 - 0.25) / 4, rtol=1e-5)
    np.testing.assert_allclose(item.contribution.arrays["update"], 0.05 * (1 + 0.9375 + 2 * 0.25), rtol=1e-5)


@pytest.mark.heavy
def test_steps_in_the_backward_pass_are_corrected_too(toy_spec: SpecFactory) -> None:
    """The correction comes after a step, so it needs no gradient: the same weights but for rounding."""
    local = {"optimizer": "sgd", "learning_rate": 0.05, "steps": 4, "batch_size": 4, "accumulation": 1}
    losses = []
    for optimizer_in_backward in (False, True):
        spec = toy_spec(
            "scaffold", options={"local": {**local, "optimizer_in_backward": optimizer_in_backward}}, rounds=3
        )
        losses.append([round_.metrics["eval_loss"] for round_ in simulate(spec).rounds])
    np.testing.assert_allclose(*losses, rtol=1e-4)
    assert losses[0][-1] < losses[0][0]
