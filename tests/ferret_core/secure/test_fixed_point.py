"""Whole updates in fixed point: the sum of integers gives the mean of the updates, to within the grid."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

from ferret_core.secure import fixed_point
from ferret_core.secure.masks import MaskSum
from ferret_core.secure.packing import Layout


def summed(updates: list[Any], clip: float, members: int, seeds: int = 0) -> tuple[Any, dict[str, float]]:
    """The mean of the updates in a group of ``members``; the others have dropped out."""
    layout = Layout(fixed_point.segments(len(updates[0]), members), members)
    vectors = [
        fixed_point.integers(update, clip, members, seeds + place, float(place)) for place, update in enumerate(updates)
    ]
    sums = layout.sum([b"".join(layout.pack(vector)) for vector in vectors])
    return fixed_point.mean(sums, len(updates), clip, members)


@pytest.mark.parametrize("clip", [1e-6, 1.0, 1000.0])
@pytest.mark.parametrize(("survivors", "members"), [(3, 3), (7, 10), (64, 64)])
def test_the_mean_is_that_of_the_updates_to_within_the_grid(survivors: int, members: int, clip: float) -> None:
    draws = np.random.default_rng(3)
    updates = [draws.uniform(-clip, clip, 3000).astype(np.float32) for _ in range(survivors)]
    for update in updates:
        update[:3] = clip, -clip, 0
    found, metrics = summed(updates, clip, members)
    exact = np.mean(np.array(updates, np.float64), axis=0)
    step = clip * members / 2**31
    assert np.abs(found - exact).max() < step + clip * 2.0**-24, "a step of the grid, and the rounding to fp32"
    assert np.sqrt(np.square(found - exact).mean()) < 1.1 * step / math.sqrt(4 * survivors) + clip * 2.0**-25
    assert found[:3].tolist() == [np.float32(clip), -np.float32(clip), 0]
    assert metrics == {"clipped_weights": 0, "train_loss": (survivors - 1) / 2}


def test_what_is_below_the_grid_counts_on_average() -> None:
    """A tenth of a step, which nearest rounding would drop: the mean over many weights keeps it."""
    step = 1000 * 3 / 2**31
    updates = [np.full(100_000, step / 10, np.float32)] * 3
    found, _ = summed(updates, 1000.0, 3)
    assert found.mean() == pytest.approx(step / 10, rel=0.02)
    assert len({*found.tolist()}) > 1
    again, _ = summed(updates, 1000.0, 3)
    other, _ = summed(updates, 1000.0, 3, seeds=9)
    assert np.array_equal(again, found)
    assert not np.array_equal(other, found)


def test_larger_changes_are_cut_to_the_clip_and_counted() -> None:
    updates = [np.array([5, -2, 0.5, 0.25] * 250, np.float32), *[np.zeros(1000, np.float32)] * 2]
    found, metrics = summed(updates, 1.0, 3)
    assert found[:4] == pytest.approx([1 / 3, -1 / 3, 0.5 / 3, 0.25 / 3], abs=1e-8)
    assert metrics["clipped_weights"] == pytest.approx(100 * 0.5 / 3, abs=1e-4)
    one = np.zeros(1000, np.float32)
    one[7] = -1.5
    assert summed([one, *updates[1:]], 1.0, 3)[1]["clipped_weights"] == pytest.approx(100 / 3000, abs=1e-4)


def test_a_long_update_is_rounded_masked_and_summed_in_pieces() -> None:
    """The memory beyond updates, packed vectors and the sum grows neither with the model nor with the masks."""
    d, members = 1 << 22, 3
    layout, keys = Layout(fixed_point.segments(d, members), members), [bytes([n]) * 32 for n in range(4)]
    updates = [np.full(d, n / 8, np.float32) for n in range(members)]

    def masked(update: Any) -> bytes:
        masks = MaskSum()
        for key in keys:
            masks.add(key)
        return b"".join(layout.pack(fixed_point.integers(update, 1.0, members, 0, None), masks))

    tracemalloc.start()
    packed = [masked(update) for update in updates]
    made = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    masks = MaskSum()
    for key in [key for key in keys for _ in updates]:
        masks.subtract(key)
    found, _ = fixed_point.mean(layout.sum(packed, masks), members, 1.0, members)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.abs(found - 0.125).max() < 1e-8
    assert made < (members + 1) * layout.size + (24 << 20)
    assert held < (members + 1) * layout.size + (40 << 20)
