"""How many coordinates fit into a number of bytes.

Counted is all that grows with model and K: the arrays (coordinates, scales, their exponent) and the list of K_l in
the metadata. What is left, names, digests, seed, metrics and the headers of the arrays, is at most 1,024 bytes
as long as names are short.
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
    """The largest K whose contribution takes at most ``budget`` bytes and its metadata, however K is allocated.

    At most Σ d_l. Raises ``spec.invalid`` about ``bytes_per_round`` for a budget that not even one coordinate beside
    the blocks sent whole fits into.
    """
    possible = range(least(blocks), sum(block.size for block in blocks) + 1)
    fitting = bisect_right(possible, budget, key=lambda K: cost(K, kind, blocks))
    if fitting == 0:
        smallest = cost(possible[0], kind, blocks)
        reason = f"the smallest possible is {smallest} for {len(blocks)} blocks with {kind} coordinates"
        raise FerretError.of_field("spec.invalid", "algorithm.bytes_per_round", budget, reason)
    return possible[fitting - 1]


def cost(K: int, kind: Kind, blocks: Sequence[Block]) -> int:
    """Bytes of the arrays that carry K coordinates, and of the longest list of K_l."""
    whole = sum(block.size for block in blocks if block.whole)
    return taken(kind, [block.size if block.whole else min(block.size, K - whole) for block in blocks], K, whole)


def taken(kind: Kind, numbers: Sequence[int], K: int, whole: int) -> int:
    """Bytes of the arrays that carry K coordinates, ``whole`` of them in blocks sent whole, and of a list of
    ``numbers``; but for the places and signs of sparse ones, which take what is left."""
    arrays = layouts(kind, K, whole, len(numbers)).values()
    return sum(math.prod(shape) * dtype.itemsize for dtype, shape in arrays) + sum(len(str(n)) + 1 for n in numbers)
