"""Sums of one-bit coordinates: the integers that participants add up under masks, and the mean that the sums give.

A participant's integers are, for each coordinate, 1 if γ < 0 and else 0; for each block its scale as ⌊2²⁰ · S / u⌉,
with the unit u of the block, known to all, and at most four units; and its training loss. With n participants, Σ the
sums, and S̄ = u · Σscale / (2²⁰ n), the mean is

    γ̄_k = S̄ · (1 − 2 Σminus_k / n)

All participants count the same, with their mean scale. In round 1 the unit is four times the expected scale, later
the last round's S̄.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferret_core.projection.coordinate_encoding import scales_in
from ferret_core.protocol.wire import Array, Arrays
from ferret_core.secure import mean_loss
from ferret_core.secure.packing import Segment

SCALE = 1 << 20
MOST_SCALE = 4 * SCALE
MEAN_SCALES = "mean_scales"
FIRST_UNIT = 4
"""Unit of round 1 in expected scales: the first update may be 16 times as long as expected."""


def segments(K: int, blocks: int) -> list[Segment]:
    """Returns a segment for each array of :func:`integers`, for K coordinates."""
    return [Segment(K, 1), Segment(blocks, MOST_SCALE), *mean_loss.SEGMENTS]


def integers(arrays: Arrays, K: Sequence[int], units: Array, loss: float | None) -> list[Array]:
    """Returns the integers of a contribution's ``sign`` coordinates; ``units`` fp (L,), ``loss`` None if unknown."""
    minus = np.unpackbits(arrays["coordinates"], count=sum(K))
    ratios = np.divide(scales_in(arrays), units, out=np.zeros(len(units)), where=units > 0)
    scales = np.rint(np.minimum(SCALE * ratios, MOST_SCALE)).astype(np.int64)
    return [minus, scales, *mean_loss.integers(loss)]


def mean(sums: Sequence[np.ndarray[Any, Any]], count: int, K: Sequence[int], units: Array) -> dict[str, Array]:
    """Returns the mean of ``count`` participants: ``coordinates``, fp32 (ΣK,), and ``mean_scales``, fp32
    (L,)."""
    minus, scales = (each.astype(np.float64) for each in sums[:2])
    lengths = units.astype(np.float64) * scales / (SCALE * count)
    coordinates = np.repeat(lengths, K) * (1 - 2 * minus / count)
    return {"coordinates": coordinates.astype(np.float32), MEAN_SCALES: lengths.astype(np.float32)}
