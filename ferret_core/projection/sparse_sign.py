"""``sparse_sign``: of many coordinates the largest are sent, by place and sign, and all others are taken for zero.

Of normal numbers, the share p of largest magnitude has a mean magnitude m(p) = 2φ(t)/p, where 2Q(t) = p. With the scale
S = ‖γ‖²/‖γ_sent‖₁ again ⟨γ^, γ⟩ = ‖γ‖²; then ‖γ^‖² is 1/(p·m²) of ‖γ‖², which for p = 1 is the π/2 of ``sign``. So n
coordinates sent do as much as n·m² exact ones: of a bit that is

    p     1       8.8 %   2.2 %   1.1 %   0.27 %  0.14 %
    bits  1       6       8       9       11      12        for each that is sent
    m²    0.64    4.5     7.0     8.2     10.8    12.2
    m²/bits 0.64  0.75    0.87    0.91    0.98    1.01

The scale is the one that DRIVE has for one bit (:mod:`ferret_core.projection.coordinate_encoding`); what it asks for,
that coordinates be sums of many terms, it asks for here too, and more of it the fewer are sent.
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
"""How few elements of a block may come to one of its coordinates. A coordinate of H is a sum of up to 4,096 terms
whatever K is; of G it is that of one bucket."""
REMAINDERS = range(9, 2, -1)
"""Bits of a gap's remainder, the best first: p = 0.7/2ʳ, from 0.14 to 8.8 %."""
LEAST = 2
"""Expected of every block on average, so that one of each fits whatever the gaps are."""
HALF = 2
"""K is at most this part of what blocks may have, so that those with large updates can have more than others."""


class Sketch(NamedTuple):
    """K coordinates, of which ``sent`` are expected to fit."""

    K: int
    sent: int


class Sent(NamedTuple):
    """What was sent of a block: its K_l, places, int64 (n,), and values there, fp32 (n,)."""

    K: int
    places: Array
    values: Array


class Sparse(Sequence[Array]):
    """γ_l, fp32 (K_l,), of every block; each is written out when it is asked for, and not kept."""

    def __init__(self, blocks: Sequence[Sent]) -> None:
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
    """The largest sketch of which a share worth sending fits into ``budget`` bytes, ``fixed`` of them taken.

    Raises ``spec.invalid`` about ``bytes_per_round`` where two coordinates of each block do not fit, and where more
    than a twelfth of any sketch would.
    """
    apart = sum(block.size for block in blocks if block.whole)
    room = [bound for block, bound in zip(blocks, bounds(basis, blocks), strict=True) if not block.whole]
    if not room:
        return Sketch(apart, 0)
    bits, least = 8 * (budget - fixed), LEAST * len(room)
    for r in REMAINDERS:
        sent = bits // (r + 3)
        K = sent * 2**r * 10 // 7
        if sent >= least and sum(room) >= HALF * K:
            return Sketch(apart + K, sent)
    r = REMAINDERS[-1]
    if bits < least * (r + 3):
        smallest = fixed - -least * (r + 3) // 8
        reason = f"the smallest possible is {smallest} for {len(blocks)} blocks with sparse_sign coordinates"
    else:
        most = fixed + sum(room) // HALF * 7 // 10 // 2**r * (r + 3) // 8
        other = "" if basis == "H" else "basis = 'H' or "
        reason = f"sparse_sign on basis {basis} fills at most {max(most, 0)} bytes with this model: lower it"
        reason += f", or take {other}coordinates = 'sign'"
    raise FerretError.of_field("spec.invalid", "algorithm.bytes_per_round", budget, reason)


def bounds(basis: str, blocks: Sequence[Block]) -> list[int]:
    """The most coordinates of every block."""
    return [block.size if block.whole else max(1, block.size // TERMS[basis]) for block in blocks]


def chosen(gammas: Sequence[Array], room: int) -> Array:
    """Ascending places, int64 (n,), in the row of all blocks' coordinates: as many as ``room`` bytes hold.

    Every block that has any sends the same share of its coordinates, the largest and at least one; of equal ones the
    first. Raises ``spec.invalid`` about ``bytes_per_round`` where one of each block does not fit.
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
    """How many of each block's K_l coordinates are among ``sent`` of all, as :func:`chosen` shares them."""
    total = sum(count for position, count in enumerate(K) if position not in whole)
    return [
        count if position in whole else min(count, max(1, sent * count // max(total, 1)))
        for position, count in enumerate(K)
    ]


def energy(K: int, sent: int) -> float:
    """‖γ^‖²/‖γ‖² of K coordinates close to normal of which the largest are sent: π/2 where all are."""
    p = min(1.0, sent / K)
    t = NormalDist().inv_cdf(1 - p / 2)
    return p / (2 * NormalDist().pdf(t)) ** 2


def _ranked(gamma: Array, count: int, K: int) -> tuple[Array, Array]:
    """Ascending places, int64 (n,), of the ``count`` largest, and for how many of all K each of them is among those
    sent: 0 for the largest of all."""
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
