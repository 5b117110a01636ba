"""Compact encoding of ascending indices.

The code is by Elias ("Efficient Storage and Retrieval by Content and Address of Static Files", Journal of the ACM 21,
1974, https://doi.org/10.1145/321812.321820) and by Fano. K ascending indices below d, with l = ⌊log₂(d/K)⌋, are two
arrays of bits, packed from the top bit down and filled up with zeros:

    high, K + ⌊(d − 1)/2ˡ⌋ bits: bit ⌊i_n/2ˡ⌋ + n is set for the n-th index i_n, n = 0, 1, …
    low, l rows of K bits: row b holds bit b of every index

That is at most log₂(d/K) + 2 bits per index; no code needs fewer than log₂(d/K) + 1.4 if K ≪ d.
"""

from __future__ import annotations

import numpy as np

from ferret_core.algorithms.configs.base import BITS, check_bits
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.wire import Array, Arrays, malformed


def index_layouts(K: int, d: int) -> dict[str, Layout]:
    """Returns the layouts for ``K`` ≥ 1 indices below ``d``."""
    width = _width(K, d)
    return {"high": Layout(BITS, (-(-(K + (d - 1 >> width)) // 8),)), "low": Layout(BITS, (width, -(-K // 8)))}


def pack_indices(indices: Array, d: int) -> dict[str, Array]:
    """Packs ascending ``indices`` below ``d``."""
    K = len(indices)
    width = _width(K, d)
    high = np.zeros(K + (d - 1 >> width), np.uint8)
    high[(indices >> width) + np.arange(K)] = 1
    low = np.zeros(index_layouts(K, d)["low"].shape, np.uint8)
    for bit in range(width):
        low[bit] = np.packbits((indices >> bit & 1).astype(np.uint8))
    return {"high": np.packbits(high), "low": low}


def unpack_indices(arrays: Arrays, K: int, d: int) -> Array:
    """Returns the ``K`` ascending indices, int64, from arrays ``high`` and ``low`` of the right layouts.

    Raises ``contribution.malformed`` for arrays that ``pack_indices`` would not have made.
    """
    width = _width(K, d)
    check_bits("high", arrays["high"], K + (d - 1 >> width))
    check_bits("low", arrays["low"], K)
    ones = np.flatnonzero(np.unpackbits(arrays["high"]))
    if len(ones) != K:
        raise malformed("high", len(ones), f"expected {K} bits that are set, one for each index")
    indices = ones - np.arange(K) << width
    for bit in range(width):
        indices |= np.unpackbits(arrays["low"][bit], count=K).astype(np.int64) << bit
    if indices[-1] >= d or bool((np.diff(indices) <= 0).any()):
        raise malformed("low", None, f"the indices do not ascend, or reach beyond the {d} parameters")
    return indices


def _width(K: int, d: int) -> int:
    """Returns l = ⌊log₂(d/K)⌋: the number of low bits of each index."""
    return (d // K).bit_length() - 1
