from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ferret_core.algorithms import sparseloco
from ferret_core.algorithms.configs._chunks import (
    Chunks,
    cut,
    from_chunks,
    in_chunks,
    largest_of_each,
    pack_positions,
    unpack_positions,
)
from ferret_core.protocol.wire import Array

SHAPES = ((130, 96), (97,), (3, 4, 5))
D = 130 * 96 + 97 + 60


def chunks_of(k: float, *tensors: tuple[int, ...]) -> Chunks:
    return Chunks(cut({str(number): shape for number, shape in enumerate(tensors)}), round(k * 1024))


def normal(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=count).astype(np.float32)


def test_sides_are_cut_by_their_largest_divisors_up_to_64() -> None:
    found = [(tensor.down, tensor.across, tensor.height, tensor.width) for tensor in chunks_of(1, *SHAPES).cuts]
    assert found == [(5, 2, 26, 48), (1, 97, 1, 1), (1, 1, 3, 20)]


def test_chunk_order_is_undone_and_keeps_a_chunk_together() -> None:
    cuts, update = chunks_of(1, *SHAPES).cuts, np.arange(D, dtype=np.float32)
    ordered = in_chunks(update, cuts)
    np.testing.assert_array_equal(from_chunks(ordered, cuts), update)
    np.testing.assert_array_equal(ordered[: 26 * 48].reshape(26, 48), update[: 130 * 96].reshape(130, 96)[:26, :48])


@pytest.mark.parametrize("k", [1, 1.5, 3.25, 64, 4096])
def test_the_largest_of_every_chunk_survive_their_code(k: float) -> None:
    chunks, ordered = chunks_of(k, *SHAPES), normal(D)
    assert sum(chunks.entries) == chunks.counts.sum()
    places = largest_of_each(ordered, chunks)
    for start, size, count in zip(chunks.starts, chunks.sizes, chunks.counts, strict=True):
        sent = places[(places >= start) & (places < start + size)] - start
        expected = np.sort(np.argsort(-np.abs(ordered[start : start + size]), kind="stable")[:count])
        np.testing.assert_array_equal(sent, expected)
    np.testing.assert_array_equal(unpack_positions(pack_positions(places, chunks), chunks), places)


def test_every_bin_is_decoded_as_the_mean_of_what_is_in_it() -> None:
    """μ = 0 and σ = √14, so that a bin is 5.6 wide, and 0 in the middle of the third."""
    bins, means = sparseloco._quantised(np.array([-6, 2, -2, 1, 0, 5], np.float32))
    assert bins.tolist() == [1, 2, 2, 2, 2, 3]
    assert means.tolist() == [0, -6, 0.25, 5]


def test_a_place_is_averaged_over_those_that_sent_it_and_a_long_tensor_is_clipped_to_the_median(
    lab: Any, weights: Any
) -> None:
    model, algorithm = weights((64,)), lab.algorithm("sparseloco", density=1 / 4096)
    updates = [np.eye(64, dtype=np.float32)[place] * value for place, value in [(3, 1), (3, 3), (9, 8)]]
    moved = lab.round(algorithm, model, updates).moved
    assert {int(place): float(moved[place]) for place in np.flatnonzero(moved)} == {3: 2.0, 9: 3.0}


def test_places_and_bins_that_nobody_would_send_are_refused(lab: Any, weights: Any) -> None:
    model, algorithm = weights(*SHAPES), lab.algorithm("sparseloco", density=3 / 4096)
    sent = lab.participate(algorithm, model, algorithm.init_state(model, 0), normal(D)).contribution
    for place in (0, 255):
        wrong = np.full_like(sent.arrays["positions"], place)
        assert lab.blamed(algorithm, model, sent, positions=wrong) == "positions"
    assert lab.blamed(algorithm, model, sent, bins=sent.arrays["bins"] | np.uint8(1)) == "bins"
