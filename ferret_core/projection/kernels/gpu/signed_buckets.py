"""G on the GPU: at memory speed, for any K and any number of contributions, many blocks per launch.

Projection adds without atomics, so the order of its sums is fixed. One pass over the weights sums each granule, a small
one sums each bucket's granules over 16 stripes at a time, and a last one sums these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import NamedTuple, final

import torch
import triton
import triton.language as tl
from torch import Tensor

from ferret_core.projection.bases.signed_buckets import Layout
from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels.base import ProjectionInput, ReconstructionTerm, UpdateInput
from ferret_core.projection.kernels.gpu._apply_buckets import apply_all_
from ferret_core.projection.kernels.gpu._jit import Value
from ferret_core.projection.kernels.gpu._launch import (
    KINDS,
    aligned,
    launch,
    number,
    own_row,
    pointer,
    sent,
    signed,
    starts,
    stretches,
    tiles,
)
from ferret_core.projection.kernels.gpu._philox import SIGNS, TILE, draw_below, flip, sign_bits
from ferret_core.projection.kernels.gpu._tiles import load, place
from ferret_core.projection.philox import Tag

ROTATIONS = tl.constexpr(int(Tag.ROTATIONS))
BUCKETS = tl.constexpr(512)
STRIPES = tl.constexpr(16)
GRANULES = 1 << 22
"""Sums of granules held at a time: 16 MB."""
FP32 = tl.constexpr(tl.float32)

# Columns of the table; the first three have the first program of each row in a pass.
WIDTH = tl.constexpr(16)
TILES, SLICES, TOTALS = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
BEFORE, AFTER, START, COUNT = tl.constexpr(3), tl.constexpr(4), tl.constexpr(5), tl.constexpr(6)
BLOCK, K_COLUMN, ORIGIN, GRANULES_COLUMN = tl.constexpr(7), tl.constexpr(8), tl.constexpr(9), tl.constexpr(10)
SUMS, PART, PARTS = tl.constexpr(11), tl.constexpr(12), tl.constexpr(13)
PARTIAL, GAMMA = tl.constexpr(14), tl.constexpr(15)

Kind = tuple[torch.dtype, torch.dtype, int, bool]


class _Part(NamedTuple):
    """A stretch of one of the pairs, by its place among them, with at most 2²² granules.

    ``granules`` begin with the first tile; ``stripes`` are the parts of 16 stripes that contain them.
    """

    pair: int
    before: Tensor
    after: Tensor
    block: int
    K: int
    granule: int
    start: int
    granules: range
    stripes: range

    @property
    def kind(self) -> Kind:
        """Parameters of the first pass's compiled kernel."""
        return self.before.dtype, self.after.dtype, self.granule, aligned(self.start, self.before, self.after)

    @property
    def counts(self) -> tuple[int, int, int, int, int, int]:
        """Numbers of programs of each pass, and of sums of granules, of parts and of buckets."""
        across, parts = -(-self.K // BUCKETS.value), len(self.stripes)
        work = tiles(self.start, self.after.numel()), parts * across, across
        return *work, len(self.granules), parts * self.K, self.K


def project_all(pairs: Sequence[ProjectionInput], seed: int) -> list[Tensor]:
    """Returns the contribution of each pair to its block's γ, fp32 (K,)."""
    found: list[list[Tensor]] = [[] for _ in pairs]
    for batch in _batches(pairs):
        for part, gamma in _project(batch, signed(seed)):
            found[part.pair].append(gamma)
    return [
        # A launch takes longer than these additions: most pairs are one part, with nothing to add.
        reduce(Tensor.add_, gammas) if gammas else torch.zeros(pair.K, device=pair.after.device)
        for pair, gammas in zip(pairs, found, strict=True)
    ]


def _batches(pairs: Sequence[ProjectionInput]) -> Iterator[list[_Part]]:
    """Yields the pairs in parts, in batches of up to 2²² granules."""
    batch, held = list[_Part](), 0
    for part in _parts(pairs):
        if batch and held + len(part.granules) > GRANULES:
            yield batch
            batch, held = [], 0
        batch.append(part)
        held += len(part.granules)
    if batch:
        yield batch


def _parts(pairs: Sequence[ProjectionInput]) -> Iterator[_Part]:
    for number_of_pair, (before, after, block, K, start) in enumerate(pairs):
        granule, count = Layout.of(block.size, K).granule, after.numel()
        for first, last in stretches(start, count, GRANULES * granule):
            whole = last - first == count
            vectors = (before, after) if whole else (before[first:last], after[first:last])
            begin = start + first
            granules = range((begin - begin % TILE.value) // granule, (start + last - 1) // granule + 1)
            of_part = K * STRIPES.value
            stripes = range(granules.start // of_part, (granules.stop - 1) // of_part + 1)
            yield _Part(number_of_pair, *vectors, block.id, K, granule, begin, granules, stripes)


def _project(batch: Sequence[_Part], seed: int) -> Iterator[tuple[_Part, Tensor]]:
    """Yields the contribution of each part to γ."""
    kinds = defaultdict[Kind, list[_Part]](list)
    for part in batch:
        kinds[part.kind].append(part)
    ordered = [part for members in kinds.values() for part in members]
    counts = [part.counts for part in ordered]
    places = [starts(column) for column in zip(*counts, strict=True)]
    device, (_, slices, totals, *sizes) = batch[0].after.device, (place[-1] for place in places)
    held = [torch.empty(size, device=device) for size in sizes]
    addresses = [tensor.data_ptr() for tensor in held]
    rows = [_row(part, place, addresses) for part, *place in zip(ordered, *places, strict=False)]
    table, first, tile = sent(rows, device), 0, places[0]
    for (before, after, granule, whole), members in kinds.items():
        last = first + len(members)
        of_kind = table[first * WIDTH.value : last * WIDTH.value]
        options = {"BEFORE_KIND": KINDS[before], "AFTER_KIND": KINDS[after], "GRANULE": granule, "ALIGNED": whole}
        launch(_sum_granules, tile[last] - tile[first], of_kind, len(members), seed, **options)
        first = last
    launch(_sum_buckets, slices, table, len(rows), seed)
    launch(_sum_parts, totals, table, len(rows))
    return zip(ordered, held[-1].split([part.K for part in ordered]), strict=True)


def _row(part: _Part, places: Sequence[int], addresses: Sequence[int]) -> tuple[int, ...]:
    _, before, after, block, K, _, start, granules, stripes = part
    sums, partial, gamma = (address + 4 * place for address, place in zip(addresses, places[3:], strict=True))
    vectors = before.data_ptr(), after.data_ptr(), start, after.numel()
    sizes = block, K, granules.start, len(granules)
    return *places[:3], *vectors, *sizes, sums, stripes.start, len(stripes), partial, gamma


@triton.jit(do_not_specialize=["rows", "seed"])
def _sum_granules(
    table: Value,
    rows: Value,
    seed: Value,
    BEFORE_KIND: tl.constexpr,
    AFTER_KIND: tl.constexpr,
    GRANULE: tl.constexpr,
    ALIGNED: tl.constexpr,
) -> None:
    """Computes Σ s·Δ over every granule of a tile; the vectors hold elements ``start`` … of the block."""
    row, tile_of_row = own_row(table, rows, WIDTH, TILES)
    start, count = number(row, START, ALIGNED), number(row, COUNT, ALIGNED)
    before = pointer(row, BEFORE, BEFORE_KIND, ALIGNED)
    after = pointer(row, AFTER, AFTER_KIND, ALIGNED)
    tile, at, inside = place(tile_of_row, start, count)
    delta = load(before, at, inside) - load(after, at, inside)
    signs = sign_bits(seed, tile, 0, tl.load(row + BLOCK).to(tl.int32), SIGNS)
    signed = tl.reshape(flip(delta, signs), [TILE // GRANULE, GRANULE])
    to = tile_of_row.to(tl.int64) * (TILE // GRANULE) + tl.arange(0, TILE // GRANULE)
    tl.store(pointer(row, SUMS, FP32) + to, tl.sum(signed, axis=1), mask=to < tl.load(row + GRANULES_COLUMN))


@triton.jit(do_not_specialize=["rows", "seed"])
def _sum_buckets(table: Value, rows: Value, seed: Value) -> None:
    """Computes partial[p, b] ← Σ over the 16 stripes of part p; ``across`` programs of 512 buckets each process it."""
    row, slice_of_row = own_row(table, rows, WIDTH, SLICES)
    K, origin, count = tl.load(row + K_COLUMN), tl.load(row + ORIGIN), tl.load(row + GRANULES_COLUMN)
    across = tl.cdiv(K, BUCKETS)
    part = slice_of_row // across
    stripes = ((tl.load(row + PART) + part) * STRIPES + tl.arange(0, STRIPES))[:, None]
    buckets = (slice_of_row % across * BUCKETS + tl.arange(0, BUCKETS))[None, :]
    places = buckets - draw_below(seed, stripes, K, tl.load(row + BLOCK).to(tl.int32), ROTATIONS)
    at = stripes * K + tl.where(places < 0, places + K, places) - origin
    granules = tl.load(pointer(row, SUMS, FP32) + at, mask=(buckets < K) & (at >= 0) & (at < count), other=0.0)
    partial = pointer(row, PARTIAL, FP32) + part * K + buckets
    tl.store(partial, tl.sum(granules, axis=0, keep_dims=True), mask=buckets < K)


@triton.jit(do_not_specialize=["rows"])
def _sum_parts(table: Value, rows: Value) -> None:
    """Computes γ_b ← Σ partial[p, b] over the parts, 16 at a time; a program processes 512 buckets."""
    row, slice_of_row = own_row(table, rows, WIDTH, TOTALS)
    K, parts, partial = tl.load(row + K_COLUMN), tl.load(row + PARTS), pointer(row, PARTIAL, FP32)
    buckets = slice_of_row.to(tl.int64) * BUCKETS + tl.arange(0, BUCKETS)
    total = tl.zeros([BUCKETS], tl.float32)
    for first in range(0, parts, STRIPES):
        part = first + tl.arange(0, STRIPES)[:, None]
        inside = (part < parts) & (buckets[None, :] < K)
        total += tl.sum(tl.load(partial + part * K + buckets[None, :], mask=inside, other=0.0), axis=0)
    tl.store(pointer(row, GAMMA, FP32) + buckets, total, mask=buckets < K)


@final
class Kernel:
    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int, *, start: int = 0) -> Tensor:
        return project_all([ProjectionInput(before, after, block, K, start)], seed)[0]

    def project_all(self, pairs: Sequence[ProjectionInput], seed: int) -> list[Tensor]:
        return project_all(pairs, seed)

    def apply_(
        self, weights: Tensor, block: Block, terms: Sequence[ReconstructionTerm], *, start: int = 0, rounding: int = 0
    ) -> None:
        apply_all_([UpdateInput(weights, block, terms, start)], rounding)

    def apply_all_(self, moves: Sequence[UpdateInput], rounding: int = 0) -> None:
        apply_all_(moves, rounding)
