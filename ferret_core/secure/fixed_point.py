"""Sums of whole updates: the integers that participants add up under masks, and the mean that the sums give.

In a group of n members, with the public clip C, the grid has 2h + 1 points from −C to C, h = ⌊(2³² − 1) / 2n⌋, so that
the sum of n integers fits 32 bits. A participant's integers are, for each weight,

    h + ⌈h · min(max(Δ, −C), C) / C − u⌉,   u uniform in [0, 1), from a public seed

the share of its weights beyond C as ⌈2²² · share⌉, and its training loss. With Σ their sum over m participants, the
mean is

    Δ̄ = C (Σ − m h) / (m h)

The rounding has no bias. In the mean of all n, its error has a standard deviation of at most C √n / 2³² and is below
C n / 2³¹. With C = 1 that is, up to n = 64, no more than one step of an fp32 weight of 0.02: the grid suits models of
every size. Zero stays zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferret_core.protocol.buffers import places
from ferret_core.protocol.wire import Array
from ferret_core.secure import mean_loss
from ferret_core.secure.packing import MOST_BITS, Entries, Segment

WHOLE = 1 << 22
"""The share of all weights."""


def segments(d: int, members: int) -> list[Segment]:
    """Returns a segment for each of :func:`integers`, for ``d`` weights."""
    return [Segment(d, 2 * _half(members)), Segment(1, WHOLE), *mean_loss.SEGMENTS]


def integers(update: Array, clip: float, members: int, seed: int, loss: float | None) -> list[Entries]:
    """Returns the integers of an ``update``, fp32 (d,), rounded by a 64-bit ``seed``; ``loss`` is None if unknown."""
    clipped = sum(int(np.count_nonzero(np.abs(update[place]) > clip)) for place in places(update))
    share = np.array([math.ceil(WHOLE * clipped / len(update))])
    return [_OnGrid(update, clip, _half(members), seed), share, *mean_loss.integers(loss)]


def mean(sums: Sequence[np.ndarray[Any, Any]], count: int, clip: float, members: int) -> tuple[Array, dict[str, float]]:
    """Returns the mean update of ``count`` participants, fp32 (d,), in the memory of the sum, and its metrics."""
    total, (clipped,), *loss = sums
    update = total.view(np.float32)
    zero, unit = count * _half(members), clip / (count * _half(members))
    for place in places(update):
        update[place] = (total[place].astype(np.int64) - zero) * unit
    return update, {"clipped_weights": 100 * int(clipped) / (WHOLE * count), **mean_loss.mean(loss)}


class _OnGrid:
    """An ``update``, fp32 (d,), as integers, each slice of them computed on request."""

    def __init__(self, update: Array, clip: float, half: int, seed: int) -> None:
        self.shape = update.shape
        self._update, self._clip, self._half, self._seed = update, clip, half, seed

    def __getitem__(self, place: slice) -> Array:
        values = np.clip(self._update[place].astype(np.float64), -self._clip, self._clip)
        values = self._half * (values / self._clip)
        below = np.floor(values)
        words = np.random.PCG64(self._seed).advance(place.start).random_raw(len(values))
        draws = (words >> np.uint64(11)) * 2.0**-53
        return (below + (draws < values - below)).astype(np.int64) + self._half


def _half(members: int) -> int:
    """Returns h."""
    return ((1 << MOST_BITS) - 1) // (2 * members)
