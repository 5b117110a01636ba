from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import LlamaForCausalLM

from ferret_core import catalog
from ferret_core.algorithms import fedprox
from ferret_core.algorithms.base import Weighted
from ferret_core.datasets.tokenization.client_data import ClientData, Encoded
from ferret_core.models.parameters import trainable
from ferret_core.simulate import simulate
from ferret_core.training.config import LocalConfig
from ferret_core.training.local import train
from tests.ferret_core.replicas import SpecFactory, flat
from tests.refusals import refused


def test_the_pull_back_is_mu_times_the_way_from_the_start(lab: Any, weights: Any) -> None:
    """Two steps of 0.5 of SGD whose loss has gradient 1: the second one's is 1 + μ (0.5 − 1)."""

    def steps(model: nn.Module, *, correct: Callable[[], None], **others: Any) -> None:
        for parameter in trainable(model).values():
            for _ in range(2):
                parameter.grad = torch.ones_like(parameter)
                correct()
                parameter.data -= 0.5 * parameter.grad

    model, algorithm = weights((2, 2), dtype=torch.bfloat16), fedprox.Algorithm(fedprox.Config(mu=0.5))
    contribution = lab.participate(algorithm, model, {}, steps).contribution
    np.testing.assert_array_equal(contribution.arrays["update"], np.full(4, 0.5 + 0.5 * 0.75, np.float32))
    moved, _ = lab.update(algorithm, weights((2, 2)), {}, Weighted(1.0, contribution))
    np.testing.assert_array_equal(moved, contribution.arrays["update"])


@pytest.mark.heavy
def test_without_the_pull_it_is_fedavg(toy_spec: SpecFactory) -> None:
    spec = {"rounds": 2, "evaluation": {"examples": 10, "generate_examples": 0}}
    free = simulate(toy_spec("fedprox", options={"mu": 0}, **spec)).digest
    assert free == simulate(toy_spec("fedavg", **spec)).digest
    assert free != simulate(toy_spec("fedprox", **spec)).digest


def test_gradients_are_clipped_with_the_correction_in_them(tiny_model: LlamaForCausalLM) -> None:
    shard = ClientData([Encoded([3, 4, 5], [6, 7, 1])], pad_id=2)
    start = flat(tiny_model)
    config = LocalConfig(optimizer="sgd", learning_rate=1.0, steps=1, accumulation=1, clip_norm=0.01)

    def enlarge() -> None:
        for weight in trainable(tiny_model).values():
            assert weight.grad is not None
            weight.grad *= 1000

    train(tiny_model, shard.batches(1, 0), config, correct=enlarge)
    assert float((flat(tiny_model) - start).norm()) == pytest.approx(0.01, rel=1e-3)


def test_steps_in_the_backward_pass_are_refused_with_the_specification(toy_spec: SpecFactory) -> None:
    local = {"optimizer": "sgd", "accumulation": 1, "optimizer_in_backward": True}
    with refused("spec.invalid", "local.optimizer_in_backward = True"):
        catalog.resolve(toy_spec("fedprox", options={"local": local}))
