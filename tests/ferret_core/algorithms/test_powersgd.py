from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ferret_core.algorithms import powersgd
from ferret_core.algorithms._base import Weighted
from ferret_core.models.parameters import shapes
from ferret_core.projection.budget import METADATA
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Array, Contribution
from ferret_core.simulate import simulate

SpecFactory = Callable[..., ExperimentSpec]


def algorithm_of(rank: int) -> powersgd.Algorithm:
    return powersgd.Algorithm(powersgd.Config(rank=rank))


def low_rank(rows: int, columns: int, rank: int, seed: int = 0) -> Array:
    draws = np.random.default_rng(seed)
    return (draws.standard_normal((rows, rank)) @ draws.standard_normal((rank, columns))).astype(np.float32)


def test_an_update_of_that_rank_arrives_exactly(lab: Any, weights: Any) -> None:
    model, algorithm = weights((30, 20), (4, 5, 6), (9,)), algorithm_of(3)
    state = algorithm.init_state(model, 0)
    update = np.concatenate([low_rank(30, 20, 3).ravel(), low_rank(4, 30, 2).ravel(), np.arange(9, dtype=np.float32)])
    contribution = lab.participate(algorithm, model, state, update)
    moved, _ = lab.update(algorithm, model, state, Weighted(1.0, contribution.contribution))
    np.testing.assert_allclose(moved, update, rtol=0, atol=2e-5)
    np.testing.assert_allclose(contribution.memory["error"], 0, atol=2e-5)


def test_nothing_is_lost_sent_and_kept_are_what_there_was(lab: Any, weights: Any, draw: Callable[..., Array]) -> None:
    model, algorithm = weights((30, 20), (17,)), algorithm_of(2)
    state, update, memory = algorithm.init_state(model, 0), draw(617, 1), {"error": draw(617, 2)}
    contribution = lab.participate(algorithm, model, state, update, memory)
    moved, _ = lab.update(algorithm, model, state, Weighted(1.0, contribution.contribution))
    np.testing.assert_allclose(moved + contribution.memory["error"], update + memory["error"], rtol=0, atol=1e-5)
    assert np.abs(contribution.memory["error"][:600]).max() > 0.1
    assert not contribution.memory["error"][600:].any()


def test_the_warm_start_finds_the_best_approximation_in_a_few_rounds(lab: Any, weights: Any) -> None:
    """Power iteration on one matrix: the error falls to that of the singular value decomposition."""
    model, algorithm = weights((40, 30)), algorithm_of(2)
    state, matrix = algorithm.init_state(model, 0), np.random.default_rng(0).standard_normal((40, 30))
    matrix = (matrix + 4 * low_rank(40, 30, 2)).astype(np.float32)
    best = np.sqrt((np.linalg.svd(matrix, compute_uv=False)[2:] ** 2).sum())
    errors = []
    for _ in range(5):
        item = lab.participate(algorithm, model, state, matrix.ravel())
        errors.append(np.linalg.norm(item.memory["error"]))
        _, state = lab.update(algorithm, model, state, Weighted(1.0, item.contribution))
    assert errors[0] > 1.05 * best
    assert errors[-1] < 1.0001 * best


def test_the_server_adds_up_the_participants_own_approximations_by_weight(lab: Any, weights: Any) -> None:
    model, algorithm = weights((12, 10), (3,)), algorithm_of(1)
    state = algorithm.init_state(model, 0)
    updates = [np.concatenate([low_rank(12, 10, 1, seed).ravel(), np.full(3, seed, np.float32)]) for seed in (1, 2)]
    sent = [lab.participate(algorithm, model, state, update).contribution for update in updates]
    moved, after = lab.update(algorithm, model, state, Weighted(1.0, sent[0]), Weighted(3.0, sent[1]))
    np.testing.assert_allclose(moved, (updates[0] + 3 * updates[1]) / 4, rtol=0, atol=1e-5)
    np.testing.assert_allclose(after["Q"], (sent[0].arrays["Q"] + 3 * sent[1].arrays["Q"]) / 4, rtol=0, atol=1e-5)


def test_like_updates_do_not_cancel_in_the_next_start(lab: Any, weights: Any) -> None:
    model, algorithm = weights((30, 20)), algorithm_of(2)
    state, common = algorithm.init_state(model, 0), low_rank(30, 20, 2)
    sent = [
        lab.participate(algorithm, model, state, (common + 0.01 * low_rank(30, 20, 9, seed)).ravel()).contribution
        for seed in (5, 6, 7)
    ]
    _, after = lab.update(algorithm, model, state, *(Weighted(1.0, contribution) for contribution in sent))
    assert np.linalg.norm(after["Q"]) > 0.95 * np.linalg.norm(sent[0].arrays["Q"])


def test_an_update_of_nothing_is_sent_as_nothing(lab: Any, weights: Any) -> None:
    model, algorithm = weights((12, 10)), algorithm_of(2)
    item = lab.participate(algorithm, model, algorithm.init_state(model, 0), np.zeros(120, np.float32))
    assert not item.contribution.arrays["Q"].any()
    assert not item.memory["error"].any()


def test_a_matrix_smaller_than_its_factors_is_sent_whole(lab: Any, weights: Any, draw: Callable[..., Array]) -> None:
    model, algorithm = weights((6, 6), (20, 30)), algorithm_of(3)
    item = lab.participate(algorithm, model, algorithm.init_state(model, 0), draw(636))
    assert {name: array.shape for name, array in item.contribution.arrays.items()} == {
        "P": (60,),
        "Q": (90,),
        "whole": (36,),
    }


def test_replicas_agree_to_the_bit_for_any_number_of_threads(
    lab: Any, weights: Any, draw: Callable[..., Array]
) -> None:
    model, algorithm = weights((300, 200)), algorithm_of(3)
    state = algorithm.init_state(model, 0)
    received = [
        Weighted(1.0, lab.participate(algorithm, model, state, draw(60_000, seed)).contribution) for seed in (1, 2)
    ]
    results, threads = [], torch.get_num_threads()
    try:
        for count in (1, 4):
            torch.set_num_threads(count)
            fresh = weights((300, 200))
            lab.fold(algorithm, fresh, state, *received)
            results.append(fresh.flat)
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_array_equal(*results)


def test_bytes_are_rank_times_rows_and_columns(toy_spec: SpecFactory) -> None:
    """Both layers' seven matrices and the embedding, at rank 2; five norm vectors whole."""
    matrices = [(32, 32), (16, 32), (16, 32), (32, 32), (64, 32), (64, 32), (32, 64)]
    numbers = 2 * (2 * sum(map(sum, matrices)) + (384 + 32)) + 5 * 32
    each = simulate(toy_spec("powersgd", options={"rank": 2}, rounds=1)).rounds[1].bytes_up / 3
    assert 0 <= each - 4 * numbers <= METADATA


def test_factors_of_another_rank_are_refused(lab: Any, weights: Any, draw: Callable[..., Array]) -> None:
    model, algorithm = weights((30, 20)), algorithm_of(2)
    item: Contribution = lab.participate(algorithm, model, algorithm.init_state(model, 0), draw(600)).contribution
    with pytest.raises(FerretError, match=r"expected float32 \(90,\)") as caught:
        algorithm_of(3).config.check(item, lab.task, shapes(model))
    assert caught.value.code == "contribution.malformed"
