"""Allocation: the number of the K coordinates that each block gets, and the K that fits a byte budget.

Arithmetic is in exact fractions, so shares, ties and sums are the same everywhere and need no tolerance.

The budget counts all that grows with model and K: the arrays (coordinates, scales, their exponent) and the K_l, a list
in the metadata, or for sparse coordinates a byte each (:data:`BYTE_COUNTS`). The rest (names, digests, seed, metrics
and the headers of the arrays) is at most 1,024 bytes for short names.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, get_args

from ferret_core.projection.blocks import Block
from ferret_core.projection.coordinate_encoding import Kind, Precision, layouts
from ferret_core.projection.variance import truncated_normal_moments
from ferret_core.protocol.errors import FerretError

AllocationRule = Literal["norm", "theorem", "optimal", "curvature", "uniform", "fixed"]
"""K_l in proportion to ‖Δ_l‖ (what the paper's experiments use), to √(‖Δ_l‖/ρ_l) (the paper's proposition 2, ρ_l of
its truncated normal), to ‖Δ_l‖√d_l (minimum of the mean squared error Σ d_l‖Δ_l‖²/K_l), to ‖Δ_l‖√h_l with h_l the trace
of the loss's curvature (minimum of what the noise adds to the loss, Σ h_l‖Δ_l‖²/K_l), to 1, or to d_l."""

RULES: tuple[AllocationRule, ...] = get_args(AllocationRule)
FIXED: tuple[AllocationRule, ...] = ("uniform", "fixed")
"""Rules that ignore the update: K_l reveals nothing about the data and is the same for all participants."""


def _byte_counts() -> list[int]:
    roots = (math.isqrt(math.isqrt(math.isqrt(2**exponent))) for exponent in range(280))
    return [0, *dict.fromkeys(roots)][:256]


BYTE_COUNTS = _byte_counts()
"""The K_l that a byte can name: 0 and the different ⌊2^(e/8)⌋ for e = 0, 1, …, up to 2³⁴."""


def least(blocks: Sequence[Block]) -> int:
    """Returns the smallest K: all elements of the blocks sent whole, and one coordinate if there are other blocks."""
    return sum(block.size for block in blocks if block.whole) + any(not block.whole for block in blocks)


def split(
    rule: AllocationRule,
    K: int,
    norms: Sequence[float],
    blocks: Sequence[Block],
    curvatures: Sequence[float] | None = None,
) -> list[int]:
    """Splits K over the blocks: d_l for a block that is sent whole, a share of the rest by ``allocate`` for the others.

    Raises like ``allocate``, naming the block, and ``spec.invalid`` for a K below ``least``.
    """
    for block, norm in zip(blocks, norms, strict=True):
        _check_finite(block.name, norm)
    if least(blocks) > K:
        reason = f"with the blocks sent whole at least {least(blocks)} are needed: raise it, or lower whole_up_to"
        raise FerretError.of_field("spec.invalid", "algorithm.K", K, reason)
    counts = [block.size for block in blocks]
    sharing = [block.id for block in blocks if not block.whole]
    if sharing:
        left = K - sum(block.size for block in blocks if block.whole)
        steep = curvatures and [curvatures[i] for i in sharing]
        shares = allocate(rule, left, [norms[i] for i in sharing], [counts[i] for i in sharing], steep)
        for i, share in zip(sharing, shares, strict=True):
            counts[i] = share
    return counts


def allocate(
    rule: AllocationRule,
    K: int,
    norms: Sequence[float],
    sizes: Sequence[int],
    curvatures: Sequence[float] | None = None,
) -> list[int]:
    """Returns K_l for blocks with update norms ‖Δ_l‖ and d_l elements.

    The sum is exactly min(K, Σ d_l). Every K_l ≤ d_l, and K_l ≥ 1 if K is at least the number of blocks. Within these
    bounds shares follow the rule, rounded by largest remainder; ties go to the earlier block. Blocks with weights that
    are all zero share by size what the others cannot take. ``curvatures`` are the blocks' h_l ≥ 0, in any unit; if
    None, every weight counts as equally steep, h_l = d_l.

    Raises ``spec.invalid`` for K < 1 and ``training.non_finite`` for a norm that is not finite.
    """
    if K < 1:
        raise FerretError.of_field("spec.invalid", "algorithm.K", K, "at least 1 coordinate must be sent")
    for position, norm in enumerate(norms):
        _check_finite(f"norms[{position}]", norm)
    steep = sizes if curvatures is None else curvatures
    weights = [_weight(rule, *block) for block in zip(norms, sizes, steep, strict=True)]
    return _rounded(_shares(min(K, sum(sizes)), weights, sizes))


def _check_finite(field: str, norm: float) -> None:
    if not math.isfinite(norm):
        raise FerretError.of_field("training.non_finite", field, norm, "the norm of its update is not finite")


def _weight(rule: AllocationRule, norm: float, size: int, curvature: float) -> Fraction:
    match rule:
        case "norm":
            return Fraction(norm)
        case "theorem":
            return Fraction(math.sqrt(norm / truncated_normal_moments(size)[0]))
        case "optimal":
            return Fraction(norm * math.sqrt(size))
        case "curvature":
            return Fraction(norm * math.sqrt(curvature))
        case "uniform":
            return Fraction(1)
        case "fixed":
            return Fraction(size)


def _shares(budget: int, weights: Sequence[Fraction], sizes: Sequence[int]) -> list[Fraction]:
    """Returns the shares λ·weight, bounded by floor and size, that sum to the budget.

    Each pass shares the rest in proportion, limits every share to its bounds, and fixes the side that the true λ can
    only push further: shares raised to the floor if too much was given, shares cut to their size if too little.
    """
    floor = Fraction(1 if budget >= len(sizes) else 0)
    shares = [Fraction(0)] * len(sizes)
    left, free = Fraction(budget), list(range(len(sizes)))
    while free:
        scale = weights if any(weights[i] for i in free) else sizes
        rate = left / sum(scale[i] for i in free)
        asked = {i: rate * scale[i] for i in free}
        held = {i: min(max(asked[i], floor), Fraction(sizes[i])) for i in free}
        excess = sum(held.values()) - left
        settled = [i for i in free if excess == 0 or (held[i] - asked[i]) * excess > 0]
        for i in settled:
            shares[i] = held[i]
            left -= held[i]
        free = sorted(set(free) - set(settled))
    return shares


def _rounded(shares: Sequence[Fraction]) -> list[int]:
    """Rounds to integers with the same sum, itself an integer: all down, then the largest remainders up."""
    counts = [math.floor(share) for share in shares]
    missing = int(sum(shares)) - sum(counts)
    by_remainder = sorted(range(len(shares)), key=lambda i: counts[i] - shares[i])
    for i in by_remainder[:missing]:
        counts[i] += 1
    return counts


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
    """Returns the bytes of the arrays that carry K coordinates, ``whole`` of them in blocks sent whole, and of the
    K_l, ``numbers``. The places and signs of sparse coordinates are not counted; they fill the rest."""
    arrays = layouts(kind, K, whole, len(numbers)).values()
    listed = len(numbers) if kind == "sparse_sign" else sum(len(str(n)) + 1 for n in numbers)
    return sum(math.prod(shape) * dtype.itemsize for dtype, shape in arrays) + listed


def rounded_down(counts: Sequence[int], blocks: Sequence[Block]) -> list[int]:
    """Returns the largest of ``BYTE_COUNTS`` up to each K_l; d_l for a block that is sent whole."""
    return counts_of(bytes_of(counts, blocks), blocks)


def bytes_of(counts: Sequence[int], blocks: Sequence[Block]) -> bytes:
    """Returns the place of each K_l, rounded down, in ``BYTE_COUNTS``; 0 for a block that is sent whole."""
    pairs = zip(counts, blocks, strict=True)
    return bytes(0 if block.whole else bisect_right(BYTE_COUNTS, K) - 1 for K, block in pairs)


def counts_of(places: bytes, blocks: Sequence[Block]) -> list[int]:
    """Returns the K_l that :func:`bytes_of` wrote."""
    pairs = zip(places, blocks, strict=True)
    return [block.size if block.whole else BYTE_COUNTS[place] for place, block in pairs]
