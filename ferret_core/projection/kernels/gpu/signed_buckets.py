"""G on the GPU: at the speed of memory, whatever K and however many contributions.

Projection adds without atomics, so the order of its sums is fixed: one pass over the weights adds up each granule,
a small one each bucket's granules.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import final

import torch
import triton
import triton.language as tl
from torch import Tensor

from ferret_core.projection.bases.signed_buckets import Layout
from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels._base import Term
from ferret_core.projection.kernels.gpu._jit import jit
from ferret_core.projection.kernels.gpu._launch import launch, signed, stretches, tiles
from ferret_core.projection.kernels.gpu._philox import draw_below
from ferret_core.projection.kernels.gpu._signs import SIGNS, TILE, flip, sign_bits
from ferret_core.projection.kernels.gpu._terms import nth, subtract
from ferret_core.projection.kernels.gpu._tiles import load, place, store
from ferret_core.projection.kernels.gpu._value import Value
from ferret_core.projection.philox import Tag
from ferret_core.projection.signs import LANES

ROTATIONS = tl.constexpr(int(Tag.ROTATIONS))
BUCKETS = tl.constexpr(512)
STRIPES = tl.constexpr(16)
GRANULES = 1 << 22
"""Sums of granules held at once: 16 MB."""


@final
class Kernel:
    def project(
        self, before: Tensor, after: Tensor, block: Block, K: int, seed: int, *, start: int = 0, share: int = 0
    ) -> Tensor:
        layout = Layout.of(block.size, K)
        found = [
            _project(before[first:last], after[first:last], block, layout, seed, start + first)
            for first, last in stretches(start, len(after), GRANULES * layout.granule)
        ]
        # A launch takes longer than adding these: most blocks are one stretch, to which nothing is added.
        return reduce(Tensor.add_, found) if found else torch.zeros(K, device=after.device)

    def apply_(
        self, weights: Tensor, block: Block, terms: Sequence[Term], *, start: int = 0, rounding: int = 0
    ) -> None:
        counts = {len(term.coefficients) for term in terms} - {0}
        granules = {K: Layout.of(block.size, K).granule for K in counts}
        unit = LANES if min(granules.values(), default=1) >= LANES else 1

        def shift(term: Term) -> int:
            return granules[len(term.coefficients)].bit_length() - 1

        subtract(_subtract, weights, block, terms, start, rounding, extra=shift, UNIT=unit)


def _project(before: Tensor, after: Tensor, block: Block, layout: Layout, seed: int, start: int) -> Tensor:
    """What a stretch adds to γ: sums of its granules, of each bucket's over 16 stripes at a time, and of these."""
    K, granule = layout.K, layout.granule
    origin, end = (start - start % TILE.value) // granule, (start + len(after) - 1) // granule + 1
    sums = torch.empty(end - origin, device=after.device)
    programs, n = tiles(start, len(after)), len(after)
    launch(_sum_granules, programs, before, after, start, n, sums, len(sums), signed(seed), block.id, GRANULE=granule)
    part, last = origin // K // STRIPES.value, (end - 1) // K // STRIPES.value
    across = -(-K // BUCKETS.value)
    partial = torch.empty(last + 1 - part, K, device=after.device)
    launch(
        _sum_buckets, len(partial) * across, sums, len(sums), origin, part, partial, K, across, signed(seed), block.id
    )
    return partial.sum(0)


@triton.jit(do_not_specialize=["granules", "seed", "block"])
def _sum_granules(
    before: Value,
    after: Value,
    start: Value,
    count: Value,
    sums: Value,
    granules: Value,
    seed: Value,
    block: Value,
    GRANULE: tl.constexpr,
) -> None:
    """Σ s·Δ over every granule of a tile; the vectors hold elements ``start`` … of the block, ``sums`` its granules."""
    number = tl.program_id(0)
    tile, at, inside = place(number, start, count)
    delta = load(before, at, inside) - load(after, at, inside)
    signed = tl.reshape(flip(delta, sign_bits(seed, tile, 0, block, SIGNS)), [TILE // GRANULE, GRANULE])
    to = number.to(tl.int64) * (TILE // GRANULE) + tl.arange(0, TILE // GRANULE)
    tl.store(sums + to, tl.sum(signed, axis=1), mask=to < granules)


@triton.jit(do_not_specialize=["count", "origin", "first", "K", "across", "seed", "block"])
def _sum_buckets(
    sums: Value,
    count: Value,
    origin: Value,
    first: Value,
    partial: Value,
    K: Value,
    across: Value,
    seed: Value,
    block: Value,
) -> None:
    """partial[p, b] ← Σ over the 16 stripes of part ``first`` + p; ``sums`` holds granules ``origin`` … of the block.

    ``across`` programs, 512 buckets each, do one part.
    """
    part = (tl.program_id(0) // across).to(tl.int64)
    stripes = ((first + part) * STRIPES + tl.arange(0, STRIPES))[:, None]
    buckets = ((tl.program_id(0) % across).to(tl.int64) * BUCKETS + tl.arange(0, BUCKETS))[None, :]
    places = buckets - draw_below(seed, stripes, K, block, ROTATIONS)
    at = stripes * K + tl.where(places < 0, places + K, places) - origin
    granules = tl.load(sums + at, mask=(buckets < K) & (at >= 0) & (at < count), other=0.0)
    tl.store(partial + part * K + buckets, tl.sum(granules, axis=0, keep_dims=True), mask=buckets < K)


@triton.jit(do_not_specialize=["terms", "rounding", "block"])
def _subtract(
    weights: Value,
    start: Value,
    count: Value,
    sheet: Value,
    terms: Value,
    rounding: Value,
    block: Value,
    UNIT: tl.constexpr,
) -> None:
    """w ← w − s·c for each term, over one tile; no term has granules of fewer than ``UNIT`` elements."""
    tile, at, inside = place(tl.program_id(0), start, count)
    values = load(weights, at, inside)
    end = tl.minimum(tl.cast(start, tl.int64) + count - tile * TILE, TILE)
    for n in range(terms):
        seed, coefficients, K, shift = nth(sheet, n)
        buckets = _buckets(seed, tile, end, K, shift, block, UNIT)
        c = tl.load(coefficients + buckets, mask=buckets < K, other=0.0)
        spread = tl.reshape(tl.broadcast_to(c[:, None], [TILE // UNIT, UNIT]), [TILE])
        values -= flip(spread, sign_bits(seed, tile, 0, block, SIGNS))
    store(weights, at, inside, values, tile, rounding, block)


@jit
def _buckets(
    seed: Value,
    tile: Value,
    end: Value,
    K: Value,
    shift: Value,
    block: Value,
    UNIT: tl.constexpr,
) -> Value:
    """The bucket of each ``UNIT`` elements of a tile, uint32 (4096 / UNIT,); of those from ``end`` on, anything.

    Stripe after stripe: most tiles lie in one, and none needs a division or a draw for each granule.
    """
    granule = tile * TILE >> shift
    stripe = granule // K
    begins = stripe * K - granule
    granules = tl.arange(0, TILE // UNIT) * UNIT >> shift
    buckets = tl.zeros([TILE // UNIT], tl.uint32)
    while begins << shift < end:
        rotated = granules.to(tl.uint32) + (draw_below(seed, stripe, K, block, ROTATIONS) - begins).to(tl.uint32)
        buckets = tl.where(granules >= begins.to(tl.int32), rotated, buckets)
        stripe += 1
        begins += K
    last = K.to(tl.uint32)
    return tl.where(buckets < last, buckets, buckets - last)
