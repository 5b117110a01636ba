"""Stochastic rounding against the implementation of the specification, and against its own promises."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ferret_core.projection.stochastic_rounding import stochastic
from tests.ferret_core.projection.test_specification import rounded as by_specification

SEED, BLOCK = 0x9E3779B97F4A7C15, 77
HALVES = [torch.bfloat16, torch.float16]
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
HALF_RANGE = st.floats(-70_000, 70_000, width=32)
SUBNORMAL = st.floats(-(2.0**-13), 2.0**-13, width=32)


def rounded(values: list[float] | Tensor, dtype: torch.dtype, start: int = 0, seed: int = SEED) -> Tensor:
    return stochastic(torch.as_tensor(values, dtype=torch.float32), dtype, seed, BLOCK, start)


def spacing(x: float, dtype: torch.dtype) -> Fraction:
    """Distance of the neighbours around |x| < 2¹²⁸: eight significant bits, or eleven; fewer below 2⁻¹²⁶ or 2⁻¹⁴."""
    digits, smallest = (8, -126) if dtype == torch.bfloat16 else (11, -14)
    exponent = max(math.frexp(x)[1] - 1, smallest) if x else smallest
    return Fraction(2) ** (exponent + 1 - digits)


@pytest.mark.parametrize("dtype", HALVES)
@settings(max_examples=150, deadline=None)
@given(
    values=st.lists(st.one_of(FINITE, HALF_RANGE, SUBNORMAL), min_size=1, max_size=20),
    start=st.sampled_from([0, 1, 7, 4096, 2**32 + 3, 2**35 - 25]),
    seed=st.integers(0, 2**64 - 1),
)
@pytest.mark.heavy
def test_rounding_is_that_of_the_format(dtype: torch.dtype, values: list[float], start: int, seed: int) -> None:
    found = rounded(values, dtype, start, seed).view(torch.int16).numpy().astype(np.uint16)
    name = str(dtype).removeprefix("torch.")
    np.testing.assert_array_equal(found, by_specification(np.array(values, np.float32), name, seed, BLOCK, start))


# 1 + 1/1000 and a third in each of: the usual range, beside a power of two, subnormal fp16, subnormal bf16.
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("x", [1.001, -1 / 3, 1.9999, 5e-5, -4e-6, 3.1e-8, 65503.0, 1e-38, -3e-39])
def test_the_mean_is_the_value(dtype: torch.dtype, x: float) -> None:
    n = 100_000
    values = torch.full((n,), x)
    drawn = rounded(values, dtype).double()
    step = float(spacing(float(values[0]), dtype))
    fraction = abs(float(values[0])) / step % 1
    # Below 13 bits under the smallest fp16 nothing is drawn: the mean is off by less than 2⁻¹³ of a step.
    noise = 5 * math.sqrt(fraction * (1 - fraction) / n) + 2**-13
    assert abs(float(drawn.mean()) - float(values[0])) / step < noise
    assert len(drawn.unique()) == 1 + (fraction > 1e-4)


def test_updates_below_the_spacing_survive() -> None:
    """A thousand steps of 1/1000 of the spacing move a bf16 weight by one spacing in the mean; to nearest, by none."""
    weights, step = torch.ones(2000, dtype=torch.bfloat16), 2.0**-7 / 1000
    for seed in range(1000):
        weights = rounded(weights.float() + step, torch.bfloat16, seed=seed)
    assert float(weights.double().mean()) == pytest.approx(1 + 2.0**-7, abs=5 * 2.0**-7 / math.sqrt(2000))
    assert float((torch.ones(1, dtype=torch.bfloat16) + step).item()) == 1


@pytest.mark.parametrize("dtype", HALVES)
def test_what_the_type_can_hold_stays(dtype: torch.dtype) -> None:
    """Every value of the type: zeros of both signs, subnormals, infinities; NaN stays NaN."""
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)
    result = rounded(every.float(), dtype)
    assert torch.equal(result.view(torch.int16)[~every.isnan()], every.view(torch.int16)[~every.isnan()])
    assert bool(result[every.isnan()].isnan().all())


@pytest.mark.parametrize("dtype", HALVES)
def test_nan_and_values_beyond_the_range(dtype: torch.dtype) -> None:
    signalling = torch.tensor([0x7F800001, 0x7FFFFFFF, -1], dtype=torch.int32).view(torch.float32)
    assert bool(rounded(signalling, dtype).isnan().all())
    above = math.ldexp(1, 16) if dtype == torch.float16 else math.inf
    assert rounded([above, -above, 3.4e38 if dtype == torch.float16 else above], dtype).tolist() == [
        math.inf,
        -math.inf,
        math.inf,
    ]
