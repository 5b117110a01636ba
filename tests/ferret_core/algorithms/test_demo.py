from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ferret_core.algorithms.configs._chunks import cut
from ferret_core.algorithms.demo import PRECISION, cosines, transformed, transformed_back
from ferret_core.protocol.wire import Array

SHAPES = ((130, 96), (97,), (64,))
D = 130 * 96 + 97 + 64


def normal(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=count).astype(np.float32)


def test_the_transform_is_the_orthonormal_cosine_transform() -> None:
    """Values of a transform of four points as they are printed everywhere."""
    expected = [
        [0.5] * 4,
        [0.6533, 0.2706, -0.2706, -0.6533],
        [0.5, -0.5, -0.5, 0.5],
        [0.2706, -0.6533, 0.6533, -0.2706],
    ]
    np.testing.assert_allclose(cosines(4), expected, atol=1e-4)
    cuts, ordered = cut({"a": (128, 96), "b": (40,)}), normal(128 * 96 + 40)
    np.testing.assert_allclose(transformed_back(transformed(ordered, cuts), cuts), ordered, atol=5e-3)


@pytest.mark.parametrize("side", range(1, 65))
def test_no_machines_cosine_is_near_enough_to_a_half_to_be_rounded_otherwise(side: int) -> None:
    row, column = np.ogrid[:side, :side]
    exact = np.sqrt(2 / side) * np.cos(np.pi * (2 * column + 1) * row / (2 * side)) * PRECISION
    exact[0] = PRECISION / np.sqrt(side)
    assert np.abs(np.abs(exact - np.floor(exact)) - 0.5).min() > 1e-8


def test_signs_of_sums_do_not_depend_on_their_order() -> None:
    """Turned about, the same numbers are added in another order, and the sums of integers are the same ones."""
    cuts = cut({"a": (64, 64)})
    spectrum = np.rint(np.random.default_rng(3).uniform(-1, 1, 4096) * 1024) / 1024
    exact = transformed_back(spectrum, cuts)
    turned = (cosines(64)[::-1].T @ spectrum.reshape(64, 64)[::-1]) @ cosines(64)
    np.testing.assert_array_equal(exact.reshape(64, 64), turned)


def test_what_is_not_sent_stays_and_fades(lab: Any, weights: Any) -> None:
    model, algorithm = weights((64,)), lab.algorithm("demo", density=1 / 4096, decay=0.5)
    state, wave = algorithm.init_state(model, 0), cosines(64).astype(np.float32)
    sent = lab.participate(algorithm, model, state, 3 * wave[5] - 2 * wave[9])
    np.testing.assert_allclose(sent.memory["error"], -2 * wave[9], atol=2e-3)
    again = lab.participate(algorithm, model, state, np.zeros(64, np.float32), sent.memory)
    assert again.contribution.arrays["positions"].tolist() == [0, 9 << 4]
    np.testing.assert_allclose(again.memory["error"], np.zeros(64), atol=2e-3)


def test_the_signs_of_the_mean_wave_are_applied_at_the_mean_length(lab: Any, weights: Any) -> None:
    model, algorithm = weights((64,)), lab.algorithm("demo", density=1 / 4096)
    wave = cosines(64).astype(np.float32)[5]
    moved = lab.round(algorithm, model, [8 * wave, -16 * wave], weights=[1, 3]).moved
    np.testing.assert_allclose(moved, -np.sign(wave) * (1 + 3 * 2) / 4, rtol=1e-3)
    assert not lab.round(algorithm, model, [8 * wave, -16 * wave]).moved.any()


def test_what_nobody_would_send_is_refused(lab: Any, weights: Any) -> None:
    model, algorithm = weights(*SHAPES), lab.algorithm("demo", density=3 / 4096)
    sent = lab.participate(algorithm, model, algorithm.init_state(model, 0), normal(D)).contribution
    assert lab.blamed(algorithm, model, sent, positions=np.zeros_like(sent.arrays["positions"])) == "positions"
    assert lab.blamed(algorithm, model, sent, signs=sent.arrays["signs"] | np.uint8(1)) == "signs"
    assert lab.blamed(algorithm, model, sent, scale=-sent.arrays["scale"]) == "scale"
