from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ferret_core.algorithms import drive
from ferret_core.protocol.wire import Array

D = 4 * 4096
SEEDS = 60


def heavy_tailed(seed: int, d: int = D) -> Array:
    return (np.random.default_rng(seed).standard_normal(d) ** 3).astype(np.float32)


def received(lab: Any, weights: Any, updates: dict[int, Array], **options: Any) -> Array:
    """What a round moves the model by; ``updates`` by the seeds of their participants' tasks."""
    model = weights((len(next(iter(updates.values()))),))
    return lab.round(lab.algorithm("drive", **options), model, [*updates.values()], seeds=updates).moved


def error(estimate: Array, update: Array) -> float:
    return float(np.square(estimate - update).sum() / np.square(update).sum())


@pytest.mark.parametrize(("scale", "expected"), [("unbiased", math.pi / 2 - 1), ("biased", 1 - 2 / math.pi)])
def test_the_error_is_the_papers(lab: Any, weights: Any, scale: str, expected: float) -> None:
    update = heavy_tailed(1)
    errors = [error(received(lab, weights, {seed: update}, scale=scale), update) for seed in range(5)]
    assert np.mean(errors) == pytest.approx(expected, rel=0.03)


def test_the_unbiased_scale_has_the_right_mean_and_the_biased_one_is_short(lab: Any, weights: Any) -> None:
    update = heavy_tailed(2)
    for scale, length in [("unbiased", 1.0), ("biased", 2 / math.pi)]:
        mean = np.mean([received(lab, weights, {seed: update}, scale=scale) for seed in range(SEEDS)], axis=0)
        assert mean @ update / (update @ update) == pytest.approx(length, rel=0.01)
        across = error(mean, length * update)
        assert across < 1.2 * (math.pi / 2 - 1) / SEEDS, "what is left is noise, which falls with the number of seeds"


def test_the_error_of_the_mean_falls_with_the_number_of_participants(lab: Any, weights: Any) -> None:
    """Twelve with different data: (π/2 − 1) · Σ‖xᵢ‖² / N²."""
    updates = {seed: heavy_tailed(seed) for seed in range(12)}
    off = received(lab, weights, updates) - np.mean(list(updates.values()), axis=0)
    expected = (math.pi / 2 - 1) * sum(np.square(update).sum() for update in updates.values()) / 144
    assert np.square(off).sum() == pytest.approx(expected, rel=0.05)


def test_one_entry_in_a_chunk_arrives_exactly_and_nothing_as_nothing(lab: Any, weights: Any) -> None:
    update = np.zeros(9000, np.float32)
    update[[17, 8999]] = 3, -5
    np.testing.assert_allclose(received(lab, weights, {4: update}), update, rtol=0, atol=1e-6)


def test_error_feedback_with_the_unbiased_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="error_feedback = true needs scale = 'biased'"):
        drive.Config(error_feedback=True)


def test_what_nobody_would_send_is_refused(lab: Any, weights: Any, draw: Callable[..., Array]) -> None:
    model, algorithm = weights((5000,)), lab.algorithm("drive")
    sent = lab.participate(algorithm, model, algorithm.init_state(model, 0), draw(5000)).contribution
    assert lab.blamed(algorithm, model, sent, scales=-sent.arrays["scales"]) == "scales"
    assert lab.blamed(algorithm, model, sent, signs=sent.arrays["signs"][:-1]) == "signs"
    assert lab.blamed(algorithm, model, sent, meta={"seed": 8}) == "metadata.seed"
