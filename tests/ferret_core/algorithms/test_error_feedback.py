"""What is not sent in a round stays with its participant and is sent later, whatever compresses the update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ferret_core.protocol.wire import Array

D = 137
TENSORS = (60, 2), (17,)
KINDS = ["float32", "float16", "int8", "sign"]


@pytest.mark.parametrize(
    ("name", "options", "decay", "counts"),
    [
        *[("topk", {"fraction": 0.2, "coordinates": kind}, 1.0, [1, 2, 5]) for kind in KINDS],
        ("signsgd", {"error_feedback": True}, 1.0, [1, 2, 5]),
        ("drive", {"scale": "biased", "error_feedback": True}, 1.0, [1, 2, 5]),
        ("sparseloco", {"density": 1 / 512}, 0.95, [1]),  # whose mean is over those that sent a place
    ],
    ids=str,
)
def test_applied_and_kept_are_what_there_was(
    lab: Any,
    weights: Any,
    draw: Callable[..., Array],
    name: str,
    options: dict[str, Any],
    decay: float,
    counts: list[int],
) -> None:
    model, algorithm = weights(*TENSORS), lab.algorithm(name, **options)
    updates, errors = ([draw(D, first + n) for n in range(len(counts))] for first in (0, 10))
    done = lab.round(algorithm, model, updates, memories=[{"error": error} for error in errors], weights=counts)
    kept = np.average([memory["error"] for memory in done.memories], axis=0, weights=counts)
    there = np.average(np.array(updates) + decay * np.array(errors), axis=0, weights=counts)
    np.testing.assert_allclose(done.moved + kept, there, rtol=0, atol=1e-5)
    assert kept.any()


def distance_from_the_uncompressed_sum(lab: Any, model: Any, name: str, rounds: int = 40, **options: Any) -> float:
    """Five participants who pull to different sides: how far off is what was applied, as a share of what was meant?"""
    algorithm, draws = lab.algorithm(name, **options), np.random.default_rng(1)
    state, own = algorithm.init_state(model, 0), draws.standard_normal((5, 260))
    memories, meant, applied = [{}] * 5, np.zeros(260), np.zeros(260)
    for n in range(rounds):
        updates = (own + draws.standard_normal((5, 260))).astype(np.float32) / 8
        done = lab.round(algorithm, model, updates, state=state, memories=memories, seeds=[n] * 5)
        state, memories = done.state, done.memories
        meant, applied = meant + updates.mean(axis=0), applied + done.moved
    return float(np.linalg.norm(applied - meant) / np.linalg.norm(meant))


@pytest.mark.parametrize(
    ("name", "options"), [("signsgd", {"aggregation": "mean"}), ("drive", {"scale": "biased"})], ids=str
)
@pytest.mark.heavy
def test_the_sum_follows_the_uncompressed_one_and_without_does_not(
    lab: Any, weights: Any, name: str, options: dict[str, Any]
) -> None:
    model = weights((40, 5), (60,))
    assert distance_from_the_uncompressed_sum(lab, model, name, error_feedback=True, **options) < 0.2
    assert distance_from_the_uncompressed_sum(lab, model, name, rounds=160, error_feedback=True, **options) < 0.1
    assert distance_from_the_uncompressed_sum(lab, model, name, **options) > 0.3


@pytest.mark.parametrize(("name", "options"), [("signsgd", {}), ("drive", {"scale": "biased"})], ids=str)
def test_without_it_nothing_is_kept(
    lab: Any, weights: Any, draw: Callable[..., Array], name: str, options: dict[str, Any]
) -> None:
    model, algorithm = weights((9,)), lab.algorithm(name, **options)
    assert lab.participate(algorithm, model, algorithm.init_state(model, 0), draw(9)).memory == {}
