"""Stochastic rounding against a second implementation, one exact fraction at a time, and against its own promises."""

from __future__ import annotations

import itertools
import math
import struct
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ferret_core.projection.philox import philox
from ferret_core.projection.stochastic_rounding import stochastic

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


def scalar_stochastic(x: float, i: int, dtype: torch.dtype, seed: int) -> float:
    """x up where its exact fraction of the spacing, cut to as many bits as are drawn, plus the draw reaches 1."""
    words = philox((i // 8, 0, BLOCK + 6 * 2**24, 1), (seed % 2**32, seed // 2**32))
    chance = int(words[i % 8 // 2]) >> 16 * (i % 2) & 0xFFFF
    bits, largest = (16, 2.0**128 - 2.0**120) if dtype == torch.bfloat16 else (13, 65504.0)
    step = spacing(x, dtype)
    low = abs(Fraction(x)) // step
    above = math.floor((abs(Fraction(x)) / step - low) * 2**bits)
    magnitude = float((low + (above + (chance >> 16 - bits) >= 2**bits)) * step)
    return math.copysign(math.inf if magnitude > largest else magnitude, x)


@pytest.mark.parametrize("dtype", HALVES)
@settings(max_examples=150, deadline=None)
@given(
    values=st.lists(st.one_of(FINITE, HALF_RANGE, SUBNORMAL), min_size=1, max_size=20),
    start=st.sampled_from([0, 1, 7, 4096, 2**32 + 3, 2**35 - 25]),
    seed=st.integers(0, 2**64 - 1),
)
@pytest.mark.heavy
def test_rounding_is_that_of_the_format(dtype: torch.dtype, values: list[float], start: int, seed: int) -> None:
    result = rounded(values, dtype, start, seed).tolist()
    expected = [scalar_stochastic(x, start + i, dtype, seed) for i, x in enumerate(values)]
    assert list(map(bits, result)) == list(map(bits, expected))


def bits(x: float) -> bytes:
    return struct.pack("d", x)


@pytest.mark.parametrize("dtype", HALVES)
@given(values=st.lists(FINITE, min_size=1, max_size=20))
@pytest.mark.heavy
def test_never_further_than_the_next_value(dtype: torch.dtype, values: list[float]) -> None:
    largest = torch.finfo(dtype).max
    for x, y in zip(values, rounded(values, dtype).tolist(), strict=True):
        if math.isinf(y):
            assert abs(x) > largest
            assert y * x > 0
        else:
            assert abs(Fraction(x) - Fraction(y)) < spacing(x, dtype)


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


@pytest.mark.parametrize("dtype", HALVES)
@given(cuts=st.lists(st.integers(0, 100), max_size=4), start=st.integers(0, 50))
def test_the_same_however_a_vector_is_split(dtype: torch.dtype, cuts: list[int], start: int) -> None:
    values = torch.randn(100, generator=torch.Generator().manual_seed(1))
    edges = [0, *sorted(cuts), 100]
    parts = [rounded(values[a:b], dtype, start + a) for a, b in itertools.pairwise(edges)]
    assert torch.equal(torch.cat(parts), rounded(values, dtype, start))


@pytest.mark.parametrize("dtype", HALVES)
def test_seed_and_element_decide(dtype: torch.dtype) -> None:
    values = torch.full((1000,), 1 / 3)
    once = rounded(values, dtype)
    assert torch.equal(rounded(values, dtype), once)
    assert not torch.equal(rounded(values, dtype, seed=SEED + 1), once)
    assert not torch.equal(rounded(values, dtype, start=1000), once)
    assert not torch.equal(stochastic(values, dtype, SEED, BLOCK + 1, 0), once)
