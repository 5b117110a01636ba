"""Training in bf16 alone: a step that bf16 has no bits for counts on average."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import nn
from transformers import LlamaForCausalLM

from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.training.config import LocalConfig
from ferret_core.training.local import train
from ferret_core.training.optimizer_in_backward import StochasticRounding, rounded
from tests.refusals import refused

IN_BACKWARD = {"optimizer": "normalized", "batch_size": 2, "accumulation": 1, "optimizer_in_backward": True}
PURE = {**IN_BACKWARD, "precision": "pure_bfloat16"}


def bits(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20), st.integers(0, 9))
def test_a_number_is_rounded_to_one_of_its_neighbours_in_bf16(values: list[float], seed: int) -> None:
    exact = torch.tensor(values)
    found = rounded(exact.clone(), bits(seed))
    towards_zero = (exact.view(torch.int32) & -65536).view(torch.float32)
    away = (towards_zero.view(torch.int32) + 65536).view(torch.float32)
    assert bool(((found == towards_zero) | ((found == away) & (exact != towards_zero))).all())


def test_the_mean_is_kept() -> None:
    found = rounded(torch.full((100_000,), 1.001), bits())
    assert set(found.tolist()) == {1.0, 1.0078125}
    assert found.double().mean().item() == pytest.approx(1.001, abs=4 * 0.0078 * 0.34 / math.sqrt(100_000))


def test_what_is_no_number_stays_so() -> None:
    found = rounded(torch.tensor([math.inf, -math.inf, math.nan]), bits())
    assert found[:2].tolist() == [math.inf, -math.inf]
    assert bool(found[2].isnan())


def test_steps_that_bf16_has_no_bits_for_count_on_average() -> None:
    weight = nn.Parameter(torch.ones(10_000, dtype=torch.bfloat16))
    rounding = StochasticRounding(weight, lambda parameters: torch.optim.SGD(parameters, lr=1e-4), bits())
    for _ in range(100):
        weight.grad = torch.ones_like(weight)
        rounding.step()
    assert weight.dtype == torch.bfloat16
    assert weight.double().mean().item() == pytest.approx(0.99, abs=1e-3)
    nearest = torch.ones(1, dtype=torch.bfloat16)
    assert (nearest - 1e-4).item() == 1.0, "rounded to the nearest, none of them would have counted"


def test_a_model_in_bf16_learns_as_one_in_fp32(tiny_model: LlamaForCausalLM, shard: ClientData) -> None:
    options = {**PURE, "learning_rate": 0.05, "steps": 20}
    pure, whole = copy.deepcopy(tiny_model).to(torch.bfloat16), copy.deepcopy(tiny_model)
    found = train(pure, shard.batches(2, 5), LocalConfig.model_validate(options), seed=3)
    expected = train(whole, shard.batches(2, 5), LocalConfig.model_validate({**options, "precision": "float32"}))
    assert {weight.dtype for weight in pure.parameters()} == {torch.bfloat16}
    assert found.train_loss == pytest.approx(expected.train_loss, rel=0.01)


def test_weights_that_a_library_keeps_in_fp32_are_refused(tiny_model: LlamaForCausalLM, shard: ClientData) -> None:
    """A router, say: its step would be lost, and its weight with it."""
    model = tiny_model.to(torch.bfloat16)
    model.model.norm.float()
    with refused("model.invalid", "torch.float32"):
        train(model, shard.batches(2, 5), LocalConfig.model_validate(PURE), seed=3)


def test_the_seed_decides_how_steps_are_rounded(tiny_model: LlamaForCausalLM, trained: Callable[..., torch.Tensor]):
    model = tiny_model.to(torch.bfloat16)
    assert torch.equal(trained(model, **PURE), trained(model, **PURE))


def test_it_has_no_fp32_weights_to_step_from_whole_gradients() -> None:
    with pytest.raises(ValidationError, match=r"precision = 'pure_bfloat16' .* it needs optimizer_in_backward = true"):
        LocalConfig.model_validate({**PURE, "optimizer_in_backward": False})
