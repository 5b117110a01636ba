from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from ferret_core.algorithms import powersgd
from ferret_core.algorithms.base import Weighted
from ferret_core.protocol.wire import Array


def algorithm_of(rank: int) -> powersgd.Algorithm:
    return powersgd.Algorithm(powersgd.Config(rank=rank))


def low_rank(rows: int, columns: int, rank: int, seed: int = 0) -> Array:
    draws = np.random.default_rng(seed)
    return (draws.standard_normal((rows, rank)) @ draws.standard_normal((rank, columns))).astype(np.float32)


class Federation:
    """Participants with updates of their own, round after round; what each did not send stays with it."""

    def __init__(self, lab: Any, model: Any, algorithm: powersgd.Algorithm, count: int) -> None:
        self.lab, self.model, self.algorithm = lab, model, algorithm
        self.state = algorithm.init_state(model, 0)
        self.memories: list[Any] = [{}] * count
        self.round = 0

    def go(self, updates: Sequence[Array], weights: Sequence[float] | None = None) -> Array:
        """What a round of these updates moves the model by."""
        self.round += 1
        how = {"state": self.state, "memories": self.memories, "weights": weights, "round": self.round}
        done = self.lab.round(self.algorithm, self.model, updates, **how)
        self.state, self.memories = done.state, done.memories
        self.sent = [part.contribution for part in done.parts]
        return done.moved

    @property
    def kept(self) -> Array:
        """The mean of the participants' memories."""
        return np.mean([memory["error"] for memory in self.memories], axis=0)


@pytest.fixture
def federation(lab: Any, weights: Any) -> Callable[..., Federation]:
    def make(*tensors: tuple[int, ...], rank: int, count: int = 3) -> Federation:
        return Federation(lab, weights(*tensors), algorithm_of(rank), count)

    return make


def test_what_is_applied_has_rank_r_for_any_number_of_participants(federation: Any, draw: Callable[..., Array]) -> None:
    """Three participants with different data, in rounds of either side."""
    run = federation((30, 20), rank=2)
    for n in range(4):
        moved = run.go([draw(600, 10 * n + seed) for seed in range(3)])
        assert np.linalg.matrix_rank(moved.reshape(30, 20), tol=1e-4) == 2


def test_rounds_take_turns_between_the_sides_and_send_one_factor(federation: Any, draw: Callable[..., Array]) -> None:
    run = federation((30, 20), (5,), rank=2)
    for expected in ({"P": (60,), "whole": (5,)}, {"Q": (40,), "whole": (5,)}, {"P": (60,), "whole": (5,)}):
        run.go([draw(605, seed) for seed in range(3)])
        assert {name: array.shape for name, array in run.sent[0].arrays.items()} == expected


def test_nothing_is_lost_applied_and_kept_are_what_there_was(federation: Any, draw: Callable[..., Array]) -> None:
    run, total = federation((30, 20), (17,), rank=2), np.zeros(617, np.float32)
    for n in range(5):
        updates = [draw(617, 10 * n + seed) for seed in range(3)]
        total += np.mean(updates, axis=0)
        total -= run.go(updates)
        np.testing.assert_allclose(total, run.kept, rtol=0, atol=2e-5)
    assert np.abs(run.kept[:600]).max() > 0.1
    assert not run.kept[600:].any()


def test_alternating_sides_find_the_best_approximation_of_the_mean(federation: Any) -> None:
    """Power iteration on the participants' mean, which none of them has: the error falls to that of the SVD."""
    common = 4 * low_rank(40, 30, 2)
    own = [common + np.random.default_rng(seed).standard_normal((40, 30)).astype(np.float32) for seed in range(3)]
    mean = np.mean(own, axis=0)
    best = np.sqrt((np.linalg.svd(mean, compute_uv=False)[2:] ** 2).sum())
    run, errors = federation((40, 30), rank=2), []
    for _ in range(8):
        run.memories = [{}] * 3
        errors.append(np.linalg.norm(run.go([update.ravel() for update in own]) - mean.ravel()))
    assert errors[0] > 1.05 * best
    assert errors[-1] < 1.0001 * best


def test_shared_factors_are_orthonormal_whatever_was_sent(federation: Any) -> None:
    """Also where updates have fewer directions than columns, or none: a lost direction would not come back."""
    run = federation((30, 20), rank=3)
    for update in (low_rank(30, 20, 1), low_rank(30, 20, 1), np.zeros((30, 20), np.float32), low_rank(30, 20, 3)):
        run.go([update.ravel()] * 3)
        (shared,) = (run.state[side].reshape(-1, 3).astype(np.float64) for side in "PQ" if side in run.state)
        np.testing.assert_allclose(shared.T @ shared, np.eye(3), rtol=0, atol=1e-6)
    moved = sum(run.go([np.zeros(600, np.float32)] * 3) for _ in range(12))
    assert np.linalg.norm(run.kept) < 1e-3 * np.linalg.norm(moved), "what was not sent once is sent later"


def test_a_heavier_participant_counts_for_more(federation: Any) -> None:
    run = federation((12, 10), (3,), rank=1, count=2)
    updates = [np.concatenate([low_rank(12, 10, 1, seed).ravel(), np.full(3, seed, np.float32)]) for seed in (1, 2)]
    moved = run.go(updates, weights=[1.0, 3.0])
    P = (run.sent[0].arrays["P"] + 3 * run.sent[1].arrays["P"]) / 4
    Q = run.algorithm.init_state(run.model, 0)["Q"]
    np.testing.assert_allclose(moved[:120], np.outer(P, Q).ravel(), rtol=0, atol=1e-5)
    np.testing.assert_allclose(moved[120:], np.full(3, 1.75), rtol=0, atol=1e-6)


def test_who_sits_rounds_out_sends_later_what_it_kept(lab: Any, weights: Any, draw: Callable[..., Array]) -> None:
    """A memory from a round of one side, used in a round of the same or the other."""
    model, algorithm = weights((30, 20)), algorithm_of(2)
    state, memory = algorithm.init_state(model, 0), {"error": draw(600, 9)}
    for n in (1, 2, 3, 4):
        others = lab.participate(algorithm, model, state, draw(600, n), round=n).contribution
        if n not in (2, 3):
            part = lab.participate(algorithm, model, state, draw(600, 20 + n), memory, round=n)
            moved, _ = lab.update(algorithm, model, state, Weighted(1.0, part.contribution))
            sum_of = draw(600, 20 + n) + memory["error"]
            np.testing.assert_allclose(moved + part.memory["error"], sum_of, rtol=0, atol=1e-5)
            memory = part.memory
        _, state = lab.update(algorithm, model, state, Weighted(1.0, others))


def test_a_round_that_is_attempted_again_gives_the_same(lab: Any, weights: Any, draw: Callable[..., Array]) -> None:
    model, algorithm = weights((30, 20)), algorithm_of(2)
    state = algorithm.init_state(model, 0)
    first, again = (lab.participate(algorithm, model, state, draw(600), seed=seed) for seed in (9, 10))
    np.testing.assert_array_equal(first.contribution.arrays["P"], again.contribution.arrays["P"])


def test_a_matrix_smaller_than_its_factors_is_sent_whole(lab: Any, weights: Any, draw: Callable[..., Array]) -> None:
    model, algorithm = weights((6, 6), (20, 30)), algorithm_of(3)
    item = lab.participate(algorithm, model, algorithm.init_state(model, 0), draw(636))
    assert {name: array.shape for name, array in item.contribution.arrays.items()} == {"P": (60,), "whole": (36,)}


def test_replicas_agree_to_the_bit_for_any_number_of_threads(
    lab: Any, weights: Any, draw: Callable[..., Array]
) -> None:
    """On the weights and on the factors that start the next round."""
    algorithm = algorithm_of(3)
    state = algorithm.init_state(weights((300, 200)), 0)
    received = [
        Weighted(1.0, lab.participate(algorithm, weights((300, 200)), state, draw(60_000, seed)).contribution)
        for seed in (1, 2, 3)
    ]
    results, threads = [], torch.get_num_threads()
    try:
        for count in (1, 4):
            torch.set_num_threads(count)
            fresh = weights((300, 200))
            after = lab.fold(algorithm, fresh, state, *received)
            results.append(np.concatenate([fresh.flat, after["P"]]))
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_array_equal(*results)


def test_factors_of_another_rank_or_side_are_refused(lab: Any, weights: Any, draw: Callable[..., Array]) -> None:
    model, algorithm = weights((30, 20)), algorithm_of(2)
    sent = lab.participate(algorithm, model, algorithm.init_state(model, 0), draw(600)).contribution
    assert lab.blamed(algorithm_of(3), model, sent) == "P"
    assert lab.blamed(algorithm, model, sent, lab.task.model_copy(update={"round": 2})) == "arrays"
