from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ferret_core.algorithms._sparsify import largest
from ferret_core.algorithms.configs._elias_fano import index_layouts, pack_indices, unpack_indices
from ferret_core.algorithms.configs.base import size_of
from ferret_core.protocol.wire import Array, Contribution

D = 3 * 40 + 17


def sent_by(item: Contribution, K: int, d: int = D) -> dict[int, float]:
    """Index → value."""
    values = item.arrays["coordinates"].astype(np.float64)
    if "exponent" in item.arrays:
        values = values * float(item.arrays["scales"][0]) * 2.0 ** int(item.arrays["exponent"][0])
    return dict(zip(unpack_indices(item.arrays, K, d).tolist(), values.tolist(), strict=True))


def test_the_largest_entries_travel_and_the_rest_is_kept(lab: Any, weights: Any) -> None:
    model, algorithm = weights((2, 3)), lab.algorithm("topk", K=2, coordinates="float32")
    update = np.array([0.5, -4, 0, 0.25, 3, -1], np.float32)
    contribution = lab.participate(algorithm, model, algorithm.init_state(model, 0), update)
    assert sent_by(contribution.contribution, 2, 6) == {1: -4.0, 4: 3.0}
    np.testing.assert_array_equal(contribution.memory["error"], np.array([0.5, 0, 0, 0.25, 0, -1], np.float32))


def test_what_was_kept_is_sent_when_it_has_grown(lab: Any, weights: Any) -> None:
    model, algorithm = weights((4,)), lab.algorithm("topk", K=1, coordinates="float32")
    state, update = algorithm.init_state(model, 0), np.array([1, 0.75, 0, 0], np.float32)
    first = lab.participate(algorithm, model, state, update)
    second = lab.participate(algorithm, model, state, update, first.memory)
    assert sent_by(first.contribution, 1, 4) == {0: 1.0}
    assert sent_by(second.contribution, 1, 4) == {1: 1.5}


def test_the_server_averages_over_the_union_by_weight(lab: Any, weights: Any) -> None:
    updates = [np.array(update, np.float32) for update in ([8, 4, 0, 0, 0], [0, 4, 0, 16, 0])]
    moved = lab.round(lab.algorithm("topk", K=2, coordinates="float32"), weights((5,)), updates, weights=[1, 3]).moved
    np.testing.assert_array_equal(moved, np.array([2, 4, 0, 12, 0], np.float32))


def test_a_half_precision_model_stays_where_nobody_sent_anything(lab: Any, weights: Any) -> None:
    model, update = weights((1000,), dtype=torch.bfloat16), np.full(1000, 2**-12, np.float32)
    assert not lab.round(lab.algorithm("topk", K=10), model, [update]).moved[10:].any()


@pytest.mark.parametrize(("K", "d"), [(1, 1), (1, 10**6), (7, 7), (1000, 1024), (333, 10**5), (5, 2**40)])
def test_indices_survive_their_code_and_take_the_bytes_it_promises(K: int, d: int) -> None:
    indices = np.unique(np.random.default_rng(K).integers(0, d, 2 * K))[:K]
    indices = indices if len(indices) == K else np.arange(K)
    indices[-1] = d - 1
    arrays = pack_indices(indices, d)
    np.testing.assert_array_equal(unpack_indices(arrays, K, d), indices)
    assert sum(array.nbytes for array in arrays.values()) == size_of(index_layouts(K, d)).arrays
    assert size_of(index_layouts(K, d)).arrays <= (K * (np.log2(d / K) + 2)) / 8 + 2 + d.bit_length()


def test_of_equal_entries_the_first_are_the_largest() -> None:
    assert largest(np.array([1, -2, 0, 2, -2], np.float32), 2).tolist() == [1, 3]


def test_indices_that_nobody_would_send_are_refused(lab: Any, weights: Any, draw: Callable[..., Array]) -> None:
    model, algorithm = weights((D,)), lab.algorithm("topk", K=9)
    sent = lab.participate(algorithm, model, algorithm.init_state(model, 0), draw(D)).contribution
    first = unpack_indices(sent.arrays, 9, D)
    for wrong in (
        pack_indices(np.sort(np.append(first[1:], first[1])), D),  # one twice
        pack_indices(np.append(first[:-1], D + 2), D + 3),  # one beyond the model
        {"low": sent.arrays["low"] | np.uint8(1)},
        {"high": sent.arrays["high"] & np.uint8(0xF0)},
    ):
        assert lab.blamed(algorithm, model, sent, **wrong) in ("high", "low")
