from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ferret_core.projection.coordinate_encoding import PRECISIONS, Kind, layouts
from ferret_core.projection.quantize import dequantize, quantize
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import decode, encode
from tests.refusals import refused

SMALLEST = 2.0**-149
# Zeros, subnormals, the usual, and the huge, all in one contribution.
numbers = st.one_of(
    st.just(0.0),
    st.floats(min_value=-1, max_value=1, width=32),
    st.floats(min_value=-(2.0**126), max_value=2.0**126, width=32),
    st.integers(-100, 100).map(lambda n: n * SMALLEST),
)
steady = settings(deadline=None)  # a busy machine is no failure
lists = st.lists(st.lists(numbers, max_size=20), min_size=1, max_size=5)


def tensors(values: list[list[float]]) -> list[Tensor]:
    return [torch.tensor(block, dtype=torch.float32) for block in values]


def noise(count: int) -> Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(1))


def sent_and_got(gammas: list[Tensor], kind: Kind, seed: int = 0, whole: Collection[int] = ()) -> Sequence[Tensor]:
    return dequantize(quantize(gammas, kind, seed, whole), kind, [len(gamma) for gamma in gammas], whole)


def largest(gamma: Tensor) -> float:
    return float(gamma.abs().max()) if len(gamma) else 0.0


@steady
@given(st.sampled_from(PRECISIONS), lists, st.data())
def test_what_is_sent_passes_the_wire_and_has_the_size_foretold(
    kind: Kind, values: list[list[float]], data: st.DataObject
) -> None:
    whole = data.draw(st.sets(st.integers(0, len(values) - 1)))
    if kind == "sign":
        whole = {position for position in whole if values[position]}
    K = [len(block) for block in values]
    received, _ = decode(encode(quantize(tensors(values), kind, whole=whole), {}))
    gammas = dequantize(received, kind, K, whole)
    assert [len(gamma) for gamma in gammas] == K
    assert all(gamma.dtype == torch.float32 and bool(gamma.isfinite().all()) for gamma in gammas)
    expected = layouts(kind, sum(K), sum(K[position] for position in whole), len(K))
    assert {name: (array.dtype, array.shape) for name, array in received.items()} == expected


@steady
@given(lists)
def test_float32_changes_nothing(values: list[list[float]]) -> None:
    gammas = tensors(values)
    assert all(torch.equal(a, b) for a, b in zip(sent_and_got(gammas, "float32"), gammas, strict=True))


@steady
@given(lists)
def test_float16_keeps_eleven_bits_whatever_the_magnitude(values: list[list[float]]) -> None:
    gammas = tensors(values)
    most = max(largest(gamma) for gamma in gammas)
    for sent, got in zip(gammas, sent_and_got(gammas, "float16"), strict=True):
        error = (got.double() - sent.double()).abs()
        floor = max(2.0**-38 * largest(sent), 2.0**-63 * most)
        assert bool((error <= 2.0**-11 * sent.double().abs() + floor + SMALLEST).all())


@steady
@given(lists, st.integers(0, 2**64 - 1))
def test_int8_is_off_by_less_than_one_step(values: list[list[float]], seed: int) -> None:
    gammas = tensors(values)
    most = max(largest(gamma) for gamma in gammas)
    for sent, got in zip(gammas, sent_and_got(gammas, "int8", seed), strict=True):
        step = max(1.001 * largest(sent) / 127, 2.0**-38 * most)
        assert bool(((got.double() - sent.double()).abs() <= step + SMALLEST).all())


@steady
@given(lists)
def test_sign_keeps_signs_and_the_inner_product(values: list[list[float]]) -> None:
    gammas = tensors(values)
    most = max(largest(gamma) for gamma in gammas)
    for sent, got in zip(gammas, sent_and_got(gammas, "sign"), strict=True):
        if largest(sent) > max(2.0**-20 * most, 1e-30):
            assert bool(((got < 0) == (sent < 0)).all())
            assert len({abs(x) for x in got.tolist()}) == 1
            square = math.fsum(x * x for x in sent.tolist())
            product = math.fsum(x * y for x, y in zip(sent.tolist(), got.tolist(), strict=True))
            assert product == pytest.approx(square, rel=2**-11)
        else:
            assert largest(got) <= max(2 * largest(sent), 2.0**-19 * most)


@steady
@given(st.sampled_from(PRECISIONS), lists, st.integers(-20, 20))
def test_only_the_ratio_of_magnitudes_counts(kind: Kind, values: list[list[float]], power: int) -> None:
    """The exponent takes up any common power of two, so no unit of the update is better than another."""
    gammas = [gamma.clamp(-(2.0**100), 2.0**100) for gamma in tensors(values)]
    gammas = [torch.where(gamma.abs() < 2.0**-100, 0.0, gamma) for gamma in gammas]
    for item, other in zip(
        sent_and_got(gammas, kind), sent_and_got([g * 2.0**power for g in gammas], kind), strict=True
    ):
        assert torch.equal(item.double() * 2.0**power, other.double())


@pytest.mark.heavy
def test_int8_keeps_the_mean_of_every_coordinate() -> None:
    gamma = noise(200)
    trials = 2000
    mean = sum(sent_and_got([gamma], "int8", seed)[0].double() for seed in range(trials)) / trials
    step = float(gamma.abs().max()) / 127
    # The standard deviation of one mean is at most step / 2 / √trials; five of them for 200 coordinates.
    assert float((mean - gamma).abs().max()) < 5 * step / 2 / math.sqrt(trials)


def test_int8_of_participants_errs_independently_and_repeatably() -> None:
    gamma = noise(1000)
    first, other, again = (sent_and_got([gamma], "int8", seed)[0] - gamma for seed in (1, 2, 1))
    assert torch.equal(first, again)
    assert abs(float(torch.corrcoef(torch.stack([first, other]))[0, 1])) < 0.15


def test_sign_of_gaussian_coordinates_has_the_error_that_theory_gives() -> None:
    gamma = noise(100_000)
    (got,) = sent_and_got([gamma], "sign")
    relative = float((got - gamma).square().sum() / gamma.square().sum())
    assert relative == pytest.approx(math.pi / 2 - 1, rel=0.02)


def test_whole_blocks_are_exact_to_a_step_where_the_others_are_signs() -> None:
    gammas = [noise(30), noise(20) * 3, noise(9)]
    got = sent_and_got(gammas, "sign", whole=[1])
    assert float((got[1] - gammas[1]).abs().max()) <= 1.001 * largest(gammas[1]) / 127
    assert all(len(set(got[position].abs().tolist())) == 1 for position in (0, 2))


def test_what_is_tiny_beside_another_block_keeps_its_mean_in_int8() -> None:
    tiny = torch.full((20_000,), 2.0**-50)
    got, _ = sent_and_got([tiny, torch.ones(1)], "int8", seed=3)
    assert float(got.double().mean()) == pytest.approx(2.0**-50, rel=0.5)


@pytest.mark.parametrize("kind", PRECISIONS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -3e38])
def test_coordinates_that_are_not_finite_are_not_sent(kind: Kind, bad: float) -> None:
    with refused("contribution.non_finite", "block 1"):
        quantize(tensors([[1.0], [0.0, bad]]), kind)


@pytest.mark.parametrize("kind", PRECISIONS)
def test_a_missing_or_additional_array_is_refused(kind: Kind) -> None:
    arrays = quantize([noise(9)], kind)
    for wrong in ({}, {**arrays, "more": np.zeros(1, dtype=np.float32)}, {"scales": np.zeros(1, dtype=np.float16)}):
        with refused("contribution.malformed", "arrays"):
            dequantize(wrong, kind, [9])


@pytest.mark.parametrize("kind", PRECISIONS)
@pytest.mark.parametrize("whole", [(), (1,)])
def test_a_wrong_shape_or_dtype_is_refused_by_name(kind: Kind, whole: Collection[int]) -> None:
    arrays = quantize([noise(9), noise(3)], kind, whole=whole)
    for name, array in arrays.items():
        for wrong, field in (
            (array[:-1], "shape"),
            (np.append(array, array[:1]), "shape"),
            (array[None], "shape"),
            (array.astype(np.uint64), "dtype"),
        ):
            with pytest.raises(FerretError, match=rf"{name}\.{field}") as caught:
                dequantize({**arrays, name: wrong}, kind, [9, 3], whole)
            assert caught.value.code == "contribution.malformed"


@pytest.mark.parametrize(
    ("kind", "name", "value", "field"),
    [
        ("int8", "scales", -1.0, "scales[0]"),
        ("int8", "scales", -0.0, "scales[0]"),
        ("int8", "exponent", 113, "exponent"),
        ("int8", "exponent", -(2**31), "exponent"),
        ("int8", "coordinates", -128, "coordinates"),
        ("sign", "coordinates", 255, "coordinates"),
    ],
)
def test_numbers_that_nobody_sends_are_refused(kind: Kind, name: str, value: float, field: str) -> None:
    """A bit after the last coordinate too."""
    arrays = quantize([noise(9)], kind)
    arrays[name] = arrays[name].copy()
    arrays[name][-1] = value
    with refused("contribution.malformed", field=field):
        dequantize(arrays, kind, [9])


def test_a_scale_that_leads_beyond_fp32_is_refused() -> None:
    arrays = {**quantize([noise(9)], "float16"), "exponent": np.array([112], dtype=np.int32)}
    arrays["coordinates"] = np.full(9, 65504, dtype=np.float16)
    with refused("contribution.non_finite", "scales[0]"):
        dequantize(arrays, "float16", [9])
