from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ferret_core.projection.quantize import KINDS, Kind, check, dequantize, quantize
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import decode, encode

numbers = st.floats(min_value=-(2.0**126), max_value=2.0**126, width=32)
steady = settings(deadline=None)  # a busy machine is no failure
lists = st.lists(st.lists(numbers, max_size=20), min_size=1, max_size=5)


def tensors(values: list[list[float]]) -> list[Tensor]:
    return [torch.tensor(block, dtype=torch.float32) for block in values]


def noise(count: int) -> Tensor:
    return torch.randn(count, generator=torch.Generator().manual_seed(1))


@steady
@given(st.sampled_from(KINDS), lists)
def test_what_is_sent_passes_the_check_and_the_wire(kind: Kind, values: list[list[float]]) -> None:
    K = [len(block) for block in values]
    arrays = quantize(tensors(values), kind)
    check(arrays, kind, K)
    received, _ = decode(encode(arrays, {}))
    gammas = dequantize(received, kind, K)
    assert [len(gamma) for gamma in gammas] == K
    assert all(gamma.dtype == torch.float32 and bool(gamma.isfinite().all()) for gamma in gammas)


@steady
@given(lists)
def test_float32_changes_nothing(values: list[list[float]]) -> None:
    gammas = tensors(values)
    received = dequantize(quantize(gammas, "float32"), "float32", [len(gamma) for gamma in gammas])
    assert all(torch.equal(a, b) for a, b in zip(received, gammas, strict=True))


@steady
@given(lists)
def test_float16_keeps_eleven_bits_whatever_the_magnitude(values: list[list[float]]) -> None:
    gammas = tensors(values)
    received = dequantize(quantize(gammas, "float16"), "float16", [len(gamma) for gamma in gammas])
    for sent, got in zip(gammas, received, strict=True):
        largest = float(sent.abs().max()) if len(sent) else 0.0
        error = (got.double() - sent.double()).abs()
        assert bool((error <= 2.0**-11 * sent.double().abs() + 2.0**-38 * largest).all())


@steady
@given(lists)
def test_int8_is_off_by_half_a_step_at_most(values: list[list[float]]) -> None:
    gammas = tensors(values)
    received = dequantize(quantize(gammas, "int8"), "int8", [len(gamma) for gamma in gammas])
    for sent, got in zip(gammas, received, strict=True):
        step = float(sent.abs().max()) / 127 if len(sent) else 0.0
        # In the range of subnormal scales the step itself is rounded.
        assert bool(((got.double() - sent.double()).abs() <= 0.501 * step + 128 * 2.0**-149).all())


@steady
@given(lists)
def test_sign_keeps_signs_and_the_inner_product(values: list[list[float]]) -> None:
    gammas = tensors(values)
    received = dequantize(quantize(gammas, "sign"), "sign", [len(gamma) for gamma in gammas])
    for sent, got in zip(gammas, received, strict=True):
        if float(sent.abs().max() if len(sent) else 0) > 1e-30:
            assert bool(((got < 0) == (sent < 0)).all())
            assert len({abs(x) for x in got.tolist()}) == 1
            square = math.fsum(x * x for x in sent.tolist())
            assert math.fsum(x * y for x, y in zip(sent.tolist(), got.tolist(), strict=True)) == pytest.approx(square)


def test_sign_of_gaussian_coordinates_has_the_error_that_theory_gives() -> None:
    gamma = noise(100_000)
    (got,) = dequantize(quantize([gamma], "sign"), "sign", [len(gamma)])
    relative = float((got - gamma).square().sum() / gamma.square().sum())
    assert relative == pytest.approx(math.pi / 2 - 1, rel=0.02)


def test_sizes_on_the_wire() -> None:
    gammas = [noise(13), noise(4)]
    sizes = {kind: sum(array.nbytes for array in quantize(gammas, kind).values()) for kind in KINDS}
    assert sizes == {"float32": 68, "float16": 34 + 8, "int8": 17 + 8, "sign": 3 + 8}


def test_bits_are_packed_from_the_top_across_blocks() -> None:
    arrays = quantize(tensors([[-1.0, 1.0, -1.0], [1.0] * 5 + [-1.0]]), "sign")
    assert arrays["coordinates"].tolist() == [0b10100000, 0b10000000]
    assert arrays["scales"].tolist() == [1.0, 1.0]


def test_tiny_and_huge_blocks_do_not_disturb_each_other() -> None:
    gammas = [noise(50) * 1e-20, noise(50) * 1e20]
    tolerances: dict[Kind, float] = {"float16": 1e-3, "int8": 0.02}
    for kind, tolerance in tolerances.items():
        for sent, got in zip(gammas, dequantize(quantize(gammas, kind), kind, [50, 50]), strict=True):
            assert float((got - sent).double().norm() / sent.double().norm()) < tolerance


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -3e38])
def test_coordinates_that_are_not_finite_are_not_sent(kind: Kind, bad: float) -> None:
    with pytest.raises(FerretError, match="block 1") as caught:
        quantize(tensors([[1.0], [0.0, bad]]), kind)
    assert caught.value.code == "contribution.non_finite"


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_or_additional_array_is_refused(kind: Kind) -> None:
    arrays = quantize([noise(9)], kind)
    for wrong in ({}, {**arrays, "more": np.zeros(1, dtype=np.float32)}, {"scales": np.zeros(1, dtype=np.float32)}):
        with pytest.raises(FerretError, match="arrays") as caught:
            check(wrong, kind, [9])
        assert caught.value.code == "contribution.malformed"


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_shape_or_dtype_is_refused_by_name(kind: Kind) -> None:
    arrays = quantize([noise(9), noise(3)], kind)
    for name, array in arrays.items():
        for wrong, field in (
            (array[:-1], "shape"),
            (np.append(array, array[:1]), "shape"),
            (array[None], "shape"),
            (array.astype(np.uint64), "dtype"),
        ):
            with pytest.raises(FerretError, match=rf"{name}\.{field}") as caught:
                dequantize({**arrays, name: wrong}, kind, [9, 3])
            assert caught.value.code == "contribution.malformed"


def test_bits_after_the_last_coordinate_must_be_zero() -> None:
    arrays = quantize([noise(9)], "sign")
    arrays["coordinates"][-1] |= 1
    with pytest.raises(FerretError, match="coordinates") as caught:
        check(arrays, "sign", [9])
    assert caught.value.code == "contribution.malformed"
