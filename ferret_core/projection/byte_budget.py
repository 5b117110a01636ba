"""Conversion of a byte budget to a number of coordinates.

It counts all that grows with model and K: the arrays (coordinates, scales, their exponent) and the list of K_l in the
metadata. The rest (names, digests, seed, metrics and the headers of the arrays) is at most 1,024 bytes for short names.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from ferret_core.projection.allocation import least
from ferret_core.projection.blocks import Block
from ferret_core.projection.coordinate_encoding import Kind, Precision, layouts
from ferret_core.protocol.errors import FerretError


def coordinates_within(budget: int, kind: Precision, blocks: Sequence[Block]) -> int:
    """Returns the largest K with a contribution of at most ``budget`` bytes plus metadata, for any allocation of K.

    At most Σ d_l. Raises ``spec.invalid`` about ``bytes_per_round`` for a budget without room for one coordinate in
    addition to the blocks sent whole.
    """
    possible = range(least(blocks), sum(block.size for block in blocks) + 1)
    fitting = bisect_right(possible, budget, key=lambda K: cost(K, kind, blocks))
    if fitting == 0:
        smallest = cost(possible[0], kind, blocks)
        reason = f"the smallest possible is {smallest} for {len(blocks)} blocks with {kind} coordinates"
        raise FerretError.of_field("spec.invalid", "algorithm.bytes_per_round", budget, reason)
    return possible[fitting - 1]


def cost(K: int, kind: Kind, blocks: Sequence[Block]) -> int:
    """Returns the bytes of the arrays that carry K coordinates, and of the longest list of K_l."""
    whole = sum(block.size for block in blocks if block.whole)
    return taken(kind, [block.size if block.whole else min(block.size, K - whole) for block in blocks], K, whole)


def taken(kind: Kind, numbers: Sequence[int], K: int, whole: int) -> int:
    """Returns the bytes of the arrays that carry K coordinates, ``whole`` of them in blocks sent whole, and of a list
    of ``numbers``. The places and signs of sparse coordinates are not counted; they fill the rest."""
    arrays = layouts(kind, K, whole, len(numbers)).values()
    return sum(math.prod(shape) * dtype.itemsize for dtype, shape in arrays) + sum(len(str(n)) + 1 for n in numbers)
