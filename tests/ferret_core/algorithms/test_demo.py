from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ferret_core.algorithms import demo
from ferret_core.algorithms._base import Weighted
from ferret_core.algorithms.configs._chunks import cut
from ferret_core.algorithms.demo import PRECISION, cosines, transformed, transformed_back
from ferret_core.models.parameters import shapes
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Array, Contribution
from ferret_core.sample import model_path
from ferret_core.simulate import simulate
from tests.algorithms import METADATA
from tests.refusals import refused

SpecFactory = Callable[..., ExperimentSpec]
SHAPES = ((130, 96), (97,), (64,))
D = 130 * 96 + 97 + 64


def algorithm_of(**options: Any) -> demo.Algorithm:
    return demo.Algorithm(demo.Config(**options))


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
    model, algorithm = weights((64,)), algorithm_of(density=1 / 4096, decay=0.5)
    state, wave = algorithm.init_state(model, 0), cosines(64).astype(np.float32)
    sent = lab.participate(algorithm, model, state, 3 * wave[5] - 2 * wave[9])
    np.testing.assert_allclose(sent.memory["error"], -2 * wave[9], atol=2e-3)
    again = lab.participate(algorithm, model, state, np.zeros(64, np.float32), sent.memory)
    assert again.contribution.arrays["positions"].tolist() == [0, 9 << 4]
    np.testing.assert_allclose(again.memory["error"], np.zeros(64), atol=2e-3)


def test_the_signs_of_the_mean_wave_are_applied_at_the_mean_length(lab: Any, weights: Any) -> None:
    model, algorithm = weights((64,)), algorithm_of(density=1 / 4096)
    state, wave = algorithm.init_state(model, 0), cosines(64).astype(np.float32)
    received = [lab.participate(algorithm, model, state, size * wave[5]).contribution for size in (8, -16)]
    moved, _ = lab.update(algorithm, model, state, Weighted(1.0, received[0]), Weighted(3.0, received[1]))
    np.testing.assert_allclose(moved, -np.sign(wave[5]) * (1 + 3 * 2) / 4, rtol=1e-3)
    even, _ = lab.update(algorithm, model, state, Weighted(1.0, received[0]), Weighted(1.0, received[1]))
    assert not even.any()


def test_a_budget_is_filled_and_kept(toy_spec: SpecFactory) -> None:
    each = simulate(toy_spec("demo", options={"bytes_per_round": 900}, rounds=1)).rounds[1].bytes_up / 3
    assert 900 - 8 < each <= 900 + METADATA


@pytest.mark.slow
def test_it_learns_on_the_demo_model(toy_spec: SpecFactory) -> None:
    options = {"density": 1 / 64, "local": {"learning_rate": 3e-3, "steps": 2}}
    model, evaluation = {"source": str(model_path())}, {"every": 2, "examples": 6, "generate": 0}
    base, *_, last = simulate(toy_spec("demo", options=options, rounds=2, model=model, evaluation=evaluation)).rounds
    assert last.metrics["eval_loss"] < base.metrics["eval_loss"] - 0.3


def test_what_nobody_would_send_is_refused(lab: Any, weights: Any) -> None:
    model, algorithm = weights(*SHAPES), algorithm_of(density=3 / 4096)
    sent = lab.participate(algorithm, model, algorithm.init_state(model, 0), normal(D)).contribution
    for changed, field, says in [
        ({"positions": np.zeros_like(sent.arrays["positions"])}, "positions", "do not ascend"),
        ({"signs": sent.arrays["signs"] | np.uint8(1)}, "signs", "are not zero"),
        ({"scale": -sent.arrays["scale"]}, "scale", "is negative"),
    ]:
        with refused("contribution.malformed", says) as caught:
            algorithm.config.check(Contribution(sent.meta, {**sent.arrays, **changed}), lab.task, shapes(model))
        assert (caught.value.code, caught.value.errors[0].field) == ("contribution.malformed", field)
