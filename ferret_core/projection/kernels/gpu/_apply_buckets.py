"""w − V·c of G, for the stretches of many blocks in one launch: one pass over the weights for any number of terms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any

import torch
import triton
import triton.language as tl

from ferret_core.projection.bases.signed_buckets import Layout
from ferret_core.projection.kernels.base import UpdateInput
from ferret_core.projection.kernels.gpu._jit import Value, jit
from ferret_core.projection.kernels.gpu._launch import (
    FIELDS,
    KINDS,
    aligned,
    launch,
    nth,
    number,
    own_row,
    pointer,
    row_of,
    sent,
    signed,
    tiles,
)
from ferret_core.projection.kernels.gpu._philox import CUBE, SIGNS, TILE, draw_below, flip, sign_cube
from ferret_core.projection.kernels.gpu._tiles import load, place_cube, store
from ferret_core.projection.philox import LANES, Tag

ROTATIONS = tl.constexpr(int(Tag.ROTATIONS))
RUN = tl.constexpr(4)
"""Tiles of a program: finding its row takes as long as one of them."""

# Columns of the table; the first one holds the first program of each row.
WIDTH = tl.constexpr(7)
PROGRAMS, WEIGHTS, START, COUNT = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2), tl.constexpr(3)
BLOCK, TERM, TERMS = tl.constexpr(4), tl.constexpr(5), tl.constexpr(6)

Kind = tuple[torch.dtype, int, bool]
Row = tuple[int, int, int, int]


def apply_all_(moves: Sequence[UpdateInput], rounding: int) -> None:
    """Computes w ← w − V·c for each term of each move, in place."""
    kinds = defaultdict[Kind, list[tuple[UpdateInput, list[Row]]]](list)
    for move in moves:
        terms = _terms(move)
        if terms and move.weights.numel():
            unit = LANES if 1 << min(row[-1] for row in terms) >= LANES else 1
            kinds[move.weights.dtype, unit, aligned(move.start, move.weights)].append((move, terms))
    for (dtype, unit, whole), members in kinds.items():
        _apply_(members, rounding, KIND=KINDS[dtype], UNIT=unit, ALIGNED=whole)


def _terms(move: UpdateInput) -> list[Row]:
    """Returns the rows of terms with coefficients; the last entry of a row is the binary logarithm of its granule."""
    size, found = move.block.size, list[Row]()
    for term in move.terms:
        if K := term.coefficients.numel():
            found.append(row_of(term, Layout.of(size, K).granule.bit_length() - 1))
    return found


def _apply_(members: Sequence[tuple[UpdateInput, list[Row]]], rounding: int, **options: Any) -> None:
    """Applies the moves that share one compiled kernel."""
    rows, program, term = list[Sequence[int]](), 0, WIDTH.value * len(members)
    for (weights, block, _, start), terms in members:
        count = weights.numel()
        rows.append((program, weights.data_ptr(), start, count, block.id, term, len(terms)))
        program += -(-tiles(start, count) // RUN.value)
        term += FIELDS.value * len(terms)
    table = sent(chain(rows, *(terms for _, terms in members)), members[0][0].weights.device)
    launch(_subtract, program, table, len(rows), signed(rounding), **options)


@triton.jit(do_not_specialize=["rows", "rounding"])
def _subtract(
    table: Value, rows: Value, rounding: Value, KIND: tl.constexpr, UNIT: tl.constexpr, ALIGNED: tl.constexpr
) -> None:
    """Computes w ← w − s·c for each term, over four tiles; all granules have at least ``UNIT`` elements."""
    row, nth_of_row = own_row(table, rows, WIDTH, PROGRAMS)
    start, count = number(row, START, ALIGNED), number(row, COUNT, ALIGNED)
    weights, block = pointer(row, WEIGHTS, KIND, ALIGNED), tl.load(row + BLOCK).to(tl.int32)
    sheet, terms = table + tl.load(row + TERM), tl.load(row + TERMS)
    for tile_of_row in range(nth_of_row * RUN, nth_of_row * RUN + RUN):
        tile, at, inside = place_cube(tile_of_row, start, count)
        values = load(weights, at, inside)
        end = tl.minimum(start + count - tile * TILE, TILE)
        for n in range(terms):
            seed, coefficients, K, shift = nth(sheet, n)
            buckets = _buckets(seed, tile, end, K, shift, block, UNIT)
            c = tl.load(coefficients + buckets, mask=buckets < K, other=0.0)
            values -= flip(_spread(c, UNIT), sign_cube(seed, tile, 0, block, SIGNS))
        store(weights, at, inside, values, tile, rounding, block)


@jit
def _spread(c: Value, UNIT: tl.constexpr) -> Value:
    """Spreads the coefficients of ``UNIT`` elements each (32, which is a row, or 1) to every element of a tile."""
    return tl.reshape(c, CUBE) if UNIT == 1 else tl.broadcast_to(tl.reshape(c, [CUBE[0], CUBE[1]])[:, :, None], CUBE)


@jit
def _buckets(seed: Value, tile: Value, end: Value, K: Value, shift: Value, block: Value, UNIT: tl.constexpr) -> Value:
    """Returns the bucket of each ``UNIT`` elements of a tile, uint32 (4096 / UNIT,); undefined from ``end`` on.

    Works stripe after stripe: most tiles are in one, and no granule needs a separate division or draw.
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
