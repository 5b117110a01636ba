"""Distribution of a block over threads for the dense families, T and R."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ferret_core.projection.kernels.cpu._threads import share_out, stretches_of_tiles
from ferret_core.projection.signs import TILE

SEGMENTS = 16
APPLIED = 4
"""Tiles per task when weights are moved: each task processes all columns of all terms."""


def summed(work: Callable[..., None], source: tuple[Any, ...], draws: tuple[Any, ...], K: int) -> NDArray[np.float32]:
    """Returns fp32 (K,): Vᵀ·Δ in at most 16 segments of whole tiles for any number of threads, added in order.

    ``source`` is (before, after, start); ``work(*source, first, last, *draws, sums)`` adds up tiles first … last − 1.
    """
    _, after, start = source
    tiles = -(-len(after) // TILE) + 1
    segments = stretches_of_tiles(start, len(after), -(-tiles // SEGMENTS))
    sums = np.zeros((len(segments), K), np.float32)
    share_out(work, [(*source, first, last, *draws, sums[n]) for n, (first, last) in enumerate(segments)])
    return np.add.reduce(sums, axis=0)
