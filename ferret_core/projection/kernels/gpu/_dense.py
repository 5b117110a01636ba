"""Dense bases: V's columns drawn tile by tile in registers, d·K entries for each projection or term.

``TIMES(x, seed, tile, k, block, constants)`` multiplies x by the entries of column k in a tile.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ferret_core.projection.blocks import Block
from ferret_core.projection.deterministic_sum import pairwise
from ferret_core.projection.kernels.gpu._jit import Value
from ferret_core.projection.kernels.gpu._launch import launch, nth, signed, stretches, tiles
from ferret_core.projection.kernels.gpu._philox import SHAPE, TILE
from ferret_core.projection.kernels.gpu._tiles import load, place, store

COLUMNS = tl.constexpr(64)
SUMS = 1 << 22
"""Sums of tiles held at a time: 16 MB, or one for each column."""


def project(
    times: Any, before: Tensor, after: Tensor, block: Block, K: int, seed: int, start: int, constants: tuple[float, ...]
) -> Tensor:
    """Returns Vᵀ·Δ, fp32 (K,): a sum for each tile and column, then pairwise over the tiles."""
    total = torch.zeros(K, device=after.device)
    across = -(-K // COLUMNS.value)
    for first, last in stretches(start, len(after), max(1, SUMS // K) * TILE.value):
        origin, n = start + first, last - first
        sums = torch.empty(tiles(origin, n), K, device=after.device)
        vectors = before[first:last], after[first:last], origin, n
        numbers = K, across, signed(seed), block.id, constants
        launch(_sum, len(sums) * across, *vectors, sums, *numbers, TIMES=times)
        total += pairwise(sums)
    return total


@triton.jit(do_not_specialize=["K", "across", "seed", "block"])
def _sum(
    before: Value,
    after: Value,
    start: Value,
    count: Value,
    sums: Value,
    K: Value,
    across: Value,
    seed: Value,
    block: Value,
    constants: Value,
    TIMES: tl.constexpr,
) -> None:
    """Computes sums[tile, k] ← Σ v·Δ; ``across`` programs, 64 columns each, process one tile."""
    number, first = tl.program_id(0) // across, tl.program_id(0) % across * COLUMNS
    tile, at, inside = place(number, start, count)
    delta = load(before, at, inside) - load(after, at, inside)
    for k in range(first, tl.minimum(first + COLUMNS, K)):
        tl.store(sums + number.to(tl.int64) * K + k, tl.sum(TIMES(delta, seed, tile, k, block, constants)))


@triton.jit(do_not_specialize=["terms", "rounding", "block"])
def subtract_columns(
    weights: Value,
    start: Value,
    count: Value,
    sheet: Value,
    terms: Value,
    rounding: Value,
    block: Value,
    constants: Value,
    TIMES: tl.constexpr,
) -> None:
    """Computes w ← w − Σ c·v for each term, over one tile; the sum is computed first, k ascending."""
    tile, at, inside = place(tl.program_id(0), start, count)
    values = load(weights, at, inside)
    for n in range(terms):
        seed, coefficients, K, _ = nth(sheet, n)
        total = tl.zeros(SHAPE, tl.float32)
        for k in range(K):
            total += TIMES(tl.load(coefficients + k), seed, tile, k, block, constants)
        values -= total
    store(weights, at, inside, values, tile, rounding, block)
