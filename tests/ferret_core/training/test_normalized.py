"""Steps whose length is the rate's, in every tensor by its share of the elements."""

from __future__ import annotations

import math

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from ferret_core.training.config import LocalConfig
from ferret_core.training.optimizers import Normalized

SHAPES = [(40, 3), (7,), (1,)]


def stepped(scale: float) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """What one step of length 0.5 takes from each of three tensors, and their gradients."""
    draw = torch.Generator().manual_seed(3)
    weights = [nn.Parameter(torch.randn(shape, generator=draw)) for shape in SHAPES]
    before = [weight.detach().clone() for weight in weights]
    for position, weight in enumerate(weights):
        weight.grad = scale * 10.0**position * torch.randn(weight.shape, generator=draw)
    Normalized(weights, lr=0.5).step()
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    return [old - new.detach() for old, new in zip(before, weights, strict=True)], gradients


def test_a_step_has_the_rates_length_whatever_the_gradients() -> None:
    for scale in (1e-6, 1.0, 1e4):
        moves, _ = stepped(scale)
        assert math.hypot(*(float(move.norm()) for move in moves)) == pytest.approx(0.5, rel=1e-5)


def test_every_tensor_moves_along_its_gradient_and_by_the_same_for_each_weight() -> None:
    moves, gradients = stepped(1.0)
    for move, gradient in zip(moves, gradients, strict=True):
        assert float(move.square().mean().sqrt()) == pytest.approx(0.5 / math.sqrt(128), rel=1e-5)
        assert float(torch.cosine_similarity(move.flatten(), gradient.flatten(), dim=0)) == pytest.approx(1, abs=1e-5)


def test_a_tensor_without_a_gradient_stays() -> None:
    still, frozen, moved = (nn.Parameter(torch.ones(4)) for _ in range(3))
    still.grad, moved.grad = torch.zeros(4), torch.ones(4)
    Normalized([still, frozen, moved], lr=0.5).step()
    assert torch.equal(still, torch.ones(4))
    assert torch.equal(frozen, torch.ones(4))
    assert float((1 - moved.detach()).norm()) == pytest.approx(0.5 * math.sqrt(1 / 3), rel=1e-5)


def test_columns_of_matrices_each_have_their_own_length() -> None:
    draw = torch.Generator().manual_seed(5)
    matrix, vector = (nn.Parameter(torch.zeros(shape)) for shape in [(6, 4), (8,)])
    matrix.grad = torch.randn(6, 4, generator=draw) * torch.tensor([1e-6, 1.0, 1e3, 0.0])
    vector.grad = torch.randn(8, generator=draw)
    Normalized([matrix, vector], lr=0.5, normalize_per="column").step()
    rms = 0.5 / math.sqrt(32)
    assert matrix.detach().square().mean(0).sqrt().tolist() == pytest.approx([rms, rms, rms, 0], rel=1e-5)
    assert float(vector.detach().square().mean().sqrt()) == pytest.approx(rms, rel=1e-5)
    assert torch.equal(matrix.detach().sign(), -matrix.grad.sign())


def test_momentum_adds_up_gradients_before_the_length_is_set() -> None:
    weight = nn.Parameter(torch.zeros(2))
    optimizer = Normalized([weight], lr=1.0, momentum=0.5)
    weight.grad = torch.tensor([4.0, 0.0])
    optimizer.step()
    assert weight.tolist() == [-1.0, 0.0]
    weight.grad = torch.tensor([0.0, 2.0])  # beside half of the first: 45 degrees
    optimizer.step()
    assert weight.tolist() == pytest.approx([-1 - math.sqrt(0.5), -math.sqrt(0.5)])


def test_steps_of_one_tensor_at_a_time_are_those_of_all_together() -> None:
    moves, gradients = stepped(1.0)
    for move, gradient in zip(moves, gradients, strict=True):
        alone = nn.Parameter(torch.zeros_like(gradient))
        alone.grad = gradient
        Normalized([alone], lr=0.5, elements=128).step()
        assert torch.allclose(-alone.detach(), move, rtol=1e-4, atol=1e-7)


def test_it_has_a_rate_and_a_schedule_of_its_own_unless_they_are_given() -> None:
    config = LocalConfig(optimizer="normalized")
    assert (config.learning_rate, config.schedule) == (0.1, "linear")
    given = LocalConfig(optimizer="normalized", learning_rate=0.3, schedule="constant")
    assert (given.learning_rate, given.schedule) == (0.3, "constant")
    assert LocalConfig.model_validate(config.model_dump()) == config
    assert LocalConfig().learning_rate == 1e-4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clip_norm": 1.0}, "clip_norm = 1.0: normalized ignores the length of a gradient"),
        ({"weight_decay": 0.1}, "normalized has no weight decay"),
        ({"options": {"eps": 1e-8}}, "eps is not an option of normalized"),
        ({"options": {"normalize_per": "row"}}, "normalize_per = 'row': normalized takes 'tensor' or 'column'"),
    ],
)
def test_what_it_cannot_do_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        LocalConfig.model_validate({"optimizer": "normalized", **options})


@pytest.mark.parametrize(
    ("schedule", "middle", "last"), [("constant", 2.0, 2.0), ("linear", 1.1, 0.2), ("cosine", 1.1, 0.2)]
)
def test_a_schedule_leads_from_the_full_rate_to_a_tenth(schedule: str, middle: float, last: float) -> None:
    config = LocalConfig.model_validate({"learning_rate": 2.0, "schedule": schedule})
    rates = [config.rate(number, 11) for number in range(1, 12)]
    assert (rates[0], rates[5], rates[10]) == pytest.approx((2.0, middle, last))
    assert sorted(rates, reverse=True) == rates
    assert config.rate(1, 1) == 2.0
