"""``sparse_sign``: the largest of many coordinates are sent by place and sign; all others count as zero.

Of normal numbers, the share p of largest magnitude has a mean magnitude m(p) = 2φ(t)/p, where 2Q(t) = p. With the scale
S = ‖γ‖²/‖γ_sent‖₁ again ⟨γ^, γ⟩ = ‖γ‖²; then ‖γ^‖² is 1/(p·m²) of ‖γ‖², which for p = 1 is the π/2 of ``sign``. So n
sent coordinates are worth n·m² exact ones. Per bit that is

    p     1       8.8 %   2.2 %   1.1 %   0.27 %  0.14 %
    bits  1       6       8       9       11      12        for each that is sent
    m²    0.64    4.5     7.0     8.2     10.8    12.2
    m²/bits 0.64  0.75    0.87    0.91    0.98    1.01

The scale is DRIVE's for one bit (:mod:`ferret_core.projection.coordinate_encoding`). Like there, coordinates must be
sums of many terms, and of more terms the fewer coordinates are sent.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import NormalDist
from typing import NamedTuple, overload

import numpy as np

from ferret_core.projection import rice_code
from ferret_core.projection.blocks import Block
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Array

TERMS = {"G": 8, "H": 1}
"""Minimum elements of a block per coordinate. A coordinate of H is a sum of up to 4,096 terms for any K; a coordinate
of G is the sum of one bucket."""
REMAINDERS = range(9, 2, -1)
"""Bits of a gap's remainder, the best first: p = 0.7/2ʳ, from 0.14 to 8.8 %."""
LEAST = 2
"""Minimum mean of sent coordinates per block, so that one of each block fits for any gaps."""
HALF = 2
"""K is at most this part of the blocks' maximum, so that blocks with large updates can have more than others."""


class Sketch(NamedTuple):
    """A sketch of K coordinates; ``sent`` of them are expected to fit."""

    K: int
    sent: int


class SentCounts(NamedTuple):
    """The sent part of a block: its K_l, places, int64 (n,), and values there, fp32 (n,)."""

    K: int
    places: Array
    values: Array


class Sparse(Sequence[Array]):
    """γ_l, fp32 (K_l,), of every block; each is expanded on access, and not cached."""

    def __init__(self, blocks: Sequence[SentCounts]) -> None:
        self.blocks = blocks

    def __len__(self) -> int:
        return len(self.blocks)

    @overload
    def __getitem__(self, position: int) -> Array: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Array]: ...
    def __getitem__(self, position: int | slice) -> Array | Sequence[Array]:
        if isinstance(position, slice):
            return Sparse(self.blocks[position])
        block = self.blocks[position]
        gamma = np.zeros(block.K, np.float32)
        gamma[block.places] = block.values
        return gamma


def sketch(budget: int, basis: str, blocks: Sequence[Block], fixed: int) -> Sketch:
    """Returns the largest sketch with a useful share that fits into ``budget`` bytes; ``fixed`` of these are taken.

    Raises ``spec.invalid`` about ``bytes_per_round`` if two coordinates of each block do not fit, or if more than a
    twelfth of any sketch would fit.
    """
    found = possible_sketch(budget, basis, blocks, fixed)
    if found is not None:
        return found
    room = _room(basis, blocks)
    bits, least, r = 8 * (budget - fixed), LEAST * len(room), REMAINDERS[-1]
    if bits < least * (r + 3):
        smallest = fixed - -least * (r + 3) // 8
        reason = f"the smallest possible is {smallest} for {len(blocks)} blocks with sparse_sign coordinates"
    else:
        most = fixed + sum(room) // HALF * 7 // 10 // 2**r * (r + 3) // 8
        other = "" if basis == "H" else "basis = 'H' or "
        reason = f"sparse_sign on basis {basis} fills at most {max(most, 0)} bytes with this model: lower it"
        reason += f", or take {other}coordinates = 'sign'"
    raise FerretError.of_field("spec.invalid", "algorithm.bytes_per_round", budget, reason)


def possible_sketch(budget: int, basis: str, blocks: Sequence[Block], fixed: int) -> Sketch | None:
    """Returns the same as :func:`sketch`, but None where that raises an error."""
    apart = sum(block.size for block in blocks if block.whole)
    room = _room(basis, blocks)
    if not room:
        return Sketch(apart, 0)
    bits, least = 8 * (budget - fixed), LEAST * len(room)
    for r in REMAINDERS:
        sent = bits // (r + 3)
        K = sent * 2**r * 10 // 7
        if sent >= least and sum(room) >= HALF * K:
            return Sketch(apart + K, sent)
    return None


def bounds(basis: str, blocks: Sequence[Block]) -> list[int]:
    """Returns the maximum number of coordinates of every block."""
    return [block.size if block.whole else max(1, block.size // TERMS[basis]) for block in blocks]


def _room(basis: str, blocks: Sequence[Block]) -> list[int]:
    """Returns the maximum number of coordinates of every block that is not sent whole."""
    return [bound for block, bound in zip(blocks, bounds(basis, blocks), strict=True) if not block.whole]


def chosen(gammas: Sequence[Array], room: int) -> Array:
    """Returns ascending places, int64 (n,), in the row of all blocks' coordinates: as many as fit into ``room`` bytes.

    Every non-empty block sends the same share of its coordinates, the largest and at least one; of equal ones the
    first. Raises ``spec.invalid`` about ``bytes_per_round`` if one coordinate of each block does not fit.
    """
    K = sum(map(len, gammas))
    most = min(K, 4 * room)
    starts = np.cumsum([0, *map(len, gammas)])
    found = [_ranked(gamma, -(-most * len(gamma) // max(K, 1)), K) for gamma in gammas]
    places = np.concatenate([part + start for (part, _), start in zip(found, starts[:-1], strict=True)])
    turns = np.concatenate([turn for _, turn in found])

    def fits(turn: int) -> bool:
        return rice_code.length(places[turns <= turn], K) <= 8 * room

    if not fits(0):
        reason = f"one coordinate of each block takes more than the {room} bytes that are left for them"
        raise FerretError.of_field("spec.invalid", "algorithm.bytes_per_round", room, reason)
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return places[turns <= low]


def sent_of(K: Sequence[int], sent: int, whole: Collection[int] = ()) -> list[int]:
    """Returns the number of each block's K_l coordinates among ``sent`` of all, shared like in :func:`chosen`."""
    total = sum(count for position, count in enumerate(K) if position not in whole)
    return [
        count if position in whole else min(count, max(1, sent * count // max(total, 1)))
        for position, count in enumerate(K)
    ]


def energy(K: int, sent: int) -> float:
    """Returns ‖γ^‖²/‖γ‖² of K almost normal coordinates with the largest sent: π/2 if all are sent."""
    p = min(1.0, sent / K)
    t = NormalDist().inv_cdf(1 - p / 2)
    return p / (2 * NormalDist().pdf(t)) ** 2


def _ranked(gamma: Array, count: int, K: int) -> tuple[Array, Array]:
    """Returns ascending places, int64 (n,), of the ``count`` largest, and the minimum total number of sent coordinates
    that includes each: 0 for the largest of all."""
    magnitudes = np.abs(gamma)
    if 0 < count < len(gamma):
        last = np.partition(magnitudes, len(gamma) - count)[len(gamma) - count]
        above = np.flatnonzero(magnitudes > last)
        places = np.sort(np.concatenate([above, np.flatnonzero(magnitudes == last)[: count - len(above)]]))
    else:
        places = np.arange(len(gamma))
    order = np.argsort(-magnitudes[places], kind="stable")
    turns = np.empty(len(places), np.int64)
    turns[order] = -(-(np.arange(len(places)) + 1) * K // max(len(gamma), 1))
    turns[order[:1]] = 0
    return places, turns
