"""For every cut into blocks, the sum of the steps' coordinates equals the whole update's coordinates."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import BlockRule, blocks_of
from ferret_core.projection.project import project
from ferret_core.projection.step_projection import StepProjection
from tests.ferret_core.projection.sample import SHAPES, every_letter, parameters
from tests.refusals import refused

STEPS = 3


@every_letter
@pytest.mark.parametrize(("rule", "whole"), [("tensor", 0), ("tensor", 77), ("grouped", 0), (5, 0)])
def test_the_sum_of_the_steps_coordinates_is_the_updates(letter: str, rule: BlockRule, whole: int) -> None:
    """From bf16 weights to fp32 ones, which are then rounded: what the rounding changes is no part of any step."""
    weights = parameters(1, torch.bfloat16)
    blocks = blocks_of(weights, rule, whole)
    K = [block.size if block.whole else min(block.size, 9) for block in blocks]
    steps = StepProjection(weights, blocks, basis(letter), K, seed=4)
    total = {name: torch.zeros(shape) for name, shape in SHAPES.items()}
    for number in range(STEPS):
        moves = parameters(10 + number)
        for name, weight in weights.items():
            after = weight.float() - 0.01 * moves[name]
            total[name] += weight.float() - after
            steps.add(weight, after)
            weight.copy_(after)
    nothing = {name: torch.zeros(shape) for name, shape in SHAPES.items()}
    expected = project(total, nothing, blocks, basis(letter), K, seed=4)
    found = steps.projected()
    assert found.seed == expected.seed
    for gamma, other, block in zip(found.coordinates, expected.coordinates, blocks, strict=True):
        torch.testing.assert_close(gamma, other, rtol=1e-4, atol=1e-6 * block.size)


def test_a_block_without_coordinates_has_none() -> None:
    weights = parameters(1)
    steps = StepProjection(weights, blocks_of(weights), basis("G"), [5, 0, 1], seed=4)
    for weight in weights.values():
        steps.add(weight, weight + 1)
    assert [len(gamma) for gamma in steps.projected().coordinates] == [5, 0, 1]


@pytest.mark.parametrize(
    ("changes", "code"), [({"seed": 2**64}, "projection.invalid"), ({"K": [5, 9]}, "projection.invalid")]
)
def test_what_cannot_be_projected_is_refused_before_the_first_step(changes: dict[str, Any], code: str) -> None:
    weights = parameters(1)
    arguments = {"blocks": blocks_of(weights), "basis": basis("G"), "K": [5, 9, 1], "seed": 4, **changes}
    with refused(code):
        StepProjection(weights, **arguments)


def test_a_step_that_is_not_finite_is_named_by_its_block() -> None:
    weights = parameters(1)
    steps = StepProjection(weights, blocks_of(weights), basis("G"), [5, 9, 1], seed=4)
    steps.add(weights["vector"], torch.full(SHAPES["vector"], math.nan))
    with refused("training.non_finite", "vector"):
        steps.projected()
