from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import LlamaForCausalLM

from ferret_core.models.parameters import trainable
from ferret_core.training.config import ZerothOrderConfig
from ferret_core.training.loss import response_loss
from ferret_core.training.zeroth_order import Descent, move_along, zeroth_order_steps
from tests.ferret_core.replicas import flat
from tests.ferret_core.training.conftest import SHARD, with_dropout
from tests.refusals import refused


def run(model: nn.Module, first_seed: int = 0, **options: object) -> Descent:
    """Descends along the directions of seeds first_seed, first_seed + 1 …"""
    config = ZerothOrderConfig.model_validate({"learning_rate": 1e-4, "steps": 3, "epsilon": 1e-3, **options})
    seeds = range(first_seed, first_seed + config.directions)
    return zeroth_order_steps(model, SHARD.batches(config.batch_size, 5), config, seeds)


def walked(model: nn.Module, first_seed: int = 0, **options: object) -> Tensor:
    moved = copy.deepcopy(model)
    run(moved, first_seed, **options)
    return flat(moved)


def direction(model: nn.Module, seed: int) -> Tensor:
    """z(seed), by moving zeros along it."""
    still = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in still.parameters():
            parameter.zero_()
    move_along(still, {seed: 1.0})
    return flat(still)


def gradient(model: nn.Module) -> Tensor:
    """Of the mean loss on all examples, by backpropagation."""
    loss = response_loss(model, next(SHARD.batches(6, 5)))
    found = torch.autograd.grad(loss.nll / loss.tokens, list(trainable(model).values()))
    return torch.cat([part.reshape(-1) for part in found])


def only_norm(model: LlamaForCausalLM) -> LlamaForCausalLM:
    """All frozen but 32 weights."""
    model.requires_grad_(False)
    model.model.norm.weight.requires_grad_(True)
    return model


def test_a_direction_is_signs_that_differ_from_seed_to_seed(tiny_model: LlamaForCausalLM) -> None:
    first, other = direction(tiny_model, 1), direction(tiny_model, 2**64 - 1)
    assert set(first.tolist()) == {-1.0, 1.0}
    assert abs((first * other).mean()) < 0.03
    assert abs(first.mean()) < 0.03


def test_a_slope_is_the_derivative_along_its_direction(tiny_model: LlamaForCausalLM) -> None:
    expected = [float(direction(tiny_model, seed) @ gradient(tiny_model)) for seed in range(8)]
    found = run(tiny_model, steps=1, batch_size=6, perturbations=8, epsilon=3e-4)
    assert found.slopes.dtype == np.float32
    assert found.slopes.tolist() == pytest.approx(expected, abs=5e-3)


@pytest.mark.parametrize("seed", range(3))
def test_a_slope_looks_to_both_sides(tiny_model: LlamaForCausalLM, seed: int) -> None:
    """So wide a step that a difference to one side would be another number."""
    epsilon, z = 0.1, direction(tiny_model, seed)

    def loss(step: float) -> float:
        moved = copy.deepcopy(tiny_model)
        nn.utils.vector_to_parameters(flat(moved) + step * z, trainable(moved).values())
        found = response_loss(moved, next(SHARD.batches(6, 5)))
        return found.nll.item() / found.tokens

    above, here, below = (loss(step) for step in (epsilon, 0, -epsilon))
    central, forward, backward = (above - below) / 2, above - here, here - below
    (found,) = run(tiny_model, seed, steps=1, batch_size=6, epsilon=epsilon).slopes
    assert found == pytest.approx(central / epsilon, abs=2e-3)
    assert min(abs(forward - central), abs(backward - central)) / epsilon > 0.02


def test_a_step_goes_down_the_mean_of_its_directions(tiny_model: LlamaForCausalLM) -> None:
    start = flat(tiny_model)
    slopes = run(tiny_model, 7, steps=1, perturbations=2, learning_rate=0.01).slopes
    expected = start - 0.01 * (slopes[0] * direction(tiny_model, 7) + slopes[1] * direction(tiny_model, 8)) / 2
    torch.testing.assert_close(flat(tiny_model), expected, rtol=0, atol=1e-6)


def test_the_slopes_alone_tell_where_the_walk_ended(tiny_model: LlamaForCausalLM) -> None:
    """Within rounding: each step rounds every weight three times, by half a unit in its last place at most."""
    replayed = copy.deepcopy(tiny_model)
    slopes = run(tiny_model, steps=20, learning_rate=1e-3).slopes
    move_along(replayed, {seed: -1e-3 * slope for seed, slope in enumerate(slopes.tolist())})
    unit = torch.finfo(torch.float32).eps * float(flat(tiny_model).abs().max())
    torch.testing.assert_close(flat(replayed), flat(tiny_model), rtol=0, atol=30 * unit)


def test_a_seed_drawn_twice_counts_twice(tiny_model: LlamaForCausalLM) -> None:
    config = ZerothOrderConfig(learning_rate=0.01, steps=2, epsilon=1e-3)
    start = flat(tiny_model)
    slopes = zeroth_order_steps(tiny_model, SHARD.batches(1, 5), config, [9, 9]).slopes
    expected = start - 0.01 * float(slopes.sum()) * direction(tiny_model, 9)
    torch.testing.assert_close(flat(tiny_model), expected, rtol=0, atol=1e-6)


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_moves_are_the_same_bits_for_any_threads_and_kernel(
    threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    original = nn.Sequential(nn.Linear(300, 200), nn.Linear(13, 7), nn.Linear(200, 301))
    steps = {3: 1e-3, 2**64 - 1: -0.7, 5: 1e-8}
    found: list[Tensor] = []
    for count, kernel in [(1, "auto"), (2, "auto"), (1, "reference")]:
        threads(count)
        monkeypatch.setenv("FERRET_KERNEL", kernel)
        model = copy.deepcopy(original)
        move_along(model, steps)
        found.append(flat(model))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])
    assert not torch.equal(found[0], flat(original))


def test_half_precision_moves_by_the_rounding_seed(tiny_model: LlamaForCausalLM) -> None:
    def moved(rounding: int) -> Tensor:
        half = copy.deepcopy(tiny_model).to(torch.bfloat16)
        move_along(half, {1: 1e-4}, rounding)
        return flat(half)

    assert torch.equal(moved(7), moved(7))
    assert not torch.equal(moved(7), moved(8))


@pytest.mark.heavy
def test_training_learns_and_reports_what_it_did(tiny_model: LlamaForCausalLM) -> None:
    first = run(tiny_model, steps=1, batch_size=6, learning_rate=1e-9).trained
    assert first.train_loss == pytest.approx(math.log(384), rel=0.1)
    assert (first.examples, first.tokens) == (6, sum(len(example.response) for example in SHARD.examples))
    run(tiny_model, 1, steps=200, batch_size=6, learning_rate=2e-3)
    assert run(tiny_model, 300, steps=1, batch_size=6).trained.train_loss < first.train_loss - 0.2


def test_accumulation_is_a_larger_batch(tiny_model: LlamaForCausalLM) -> None:
    large = run(copy.deepcopy(tiny_model), batch_size=4)
    small = run(tiny_model, batch_size=2, accumulation=2)
    assert small.slopes.tolist() == pytest.approx(large.slopes.tolist(), abs=5e-3)
    assert small.trained.train_loss == pytest.approx(large.trained.train_loss)
    assert small.trained.examples == 12


def test_both_losses_are_of_the_model_without_dropout(tiny_model: LlamaForCausalLM) -> None:
    evaluated = walked(tiny_model)
    before = torch.get_rng_state()
    dropping = with_dropout(tiny_model).train()
    assert torch.equal(walked(dropping), evaluated)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_model_keeps_its_mode(tiny_model: LlamaForCausalLM) -> None:
    for mode in (True, False):
        run(tiny_model.train(mode))
        assert tiny_model.training is mode
        assert all(parameter.grad is None for parameter in tiny_model.parameters())


def test_frozen_parameters_stay(tiny_model: LlamaForCausalLM) -> None:
    before = tiny_model.model.embed_tokens.weight.clone()
    model = only_norm(tiny_model)
    start = flat(model)
    run(model)
    assert torch.equal(model.model.embed_tokens.weight, before)
    assert not torch.equal(flat(model), start)


def test_a_runaway_names_the_step_and_the_remedy(tiny_model: LlamaForCausalLM) -> None:
    with refused("training.non_finite", "learning_rate = 1000000000000.0", "local step 2 of 3"):
        run(tiny_model, learning_rate=1e12)


def test_a_broken_weight_stops_at_the_first_step(tiny_model: LlamaForCausalLM) -> None:
    with torch.no_grad():
        tiny_model.model.norm.weight[0] = math.nan
    with refused("training.non_finite", "at local step 1 of 3 the losses on either side are nan and nan"):
        run(tiny_model)
