"""H on the GPU: a program transforms a chunk of 4096 elements, twelve additions each.

The last elements of a block, cut by its binary digits, are one chunk here too, with parts that take part in fewer
butterflies: the part of element e is as long as the highest binary digit in which e and the chunk's length differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
import triton
import triton.language as tl
from torch import Tensor

from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels.base import ReconstructionTerm
from ferret_core.projection.kernels.gpu._jit import Value, jit
from ferret_core.projection.kernels.gpu._launch import launch, nth, signed, subtract, tiles
from ferret_core.projection.kernels.gpu._philox import MINUS, SHAPE, SIGNS, TILE, draw_below, flip, sign_bits
from ferret_core.projection.kernels.gpu._tiles import load, place, store
from ferret_core.projection.philox import Tag

HADAMARD_ROWS = tl.constexpr(int(Tag.HADAMARD_ROWS))
STAGES = tl.constexpr(12)
TILE_ROOT = tl.constexpr(2.0**-6)
HALF_ROOT = tl.constexpr(2.0**-0.5)
COLUMNS = tl.constexpr(128)
WARPS = 8
RESIDENT = 1024
"""Programs of a reconstruction, each with 16 kB for placing coefficients."""


@final
class Kernel:
    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int, *, start: int = 0) -> Tensor:
        gamma = torch.zeros(K, device=after.device)
        if len(after):
            vectors = before, after, start, len(after)
            numbers = K, signed(seed), block.id, block.size
            launch(_project, tiles(start, len(after)), *vectors, gamma, *numbers, num_warps=WARPS)
        return gamma

    def apply_(
        self, weights: Tensor, block: Block, terms: Sequence[ReconstructionTerm], *, start: int = 0, rounding: int = 0
    ) -> None:
        chunks = tiles(start, len(weights))
        placed = torch.zeros(min(chunks, RESIDENT), TILE.value, device=weights.device)
        more = block.size, placed, chunks
        subtract(_subtract, weights, block, terms, start, rounding, *more, programs=len(placed), num_warps=WARPS)


@triton.jit(do_not_specialize=["K", "seed", "block", "d"])
def _project(
    before: Value, after: Value, start: Value, count: Value, gamma: Value, K: Value, seed: Value, block: Value, d: Value
) -> None:
    """Computes γ_k ← n·y for each place in a chunk; n is the size of the place's stratum."""
    chunk, at, inside = place(tl.program_id(0), start, count)
    delta = load(before, at, inside) - load(after, at, inside)
    signed = tl.reshape(flip(delta, sign_bits(seed, chunk, 0, block, SIGNS)), [TILE])
    y = _hadamard(signed, tl.minimum(d - chunk * TILE, TILE))
    low, high = _near(chunk, K, d)
    for first in range(low, high, COLUMNS):
        k = first + tl.arange(0, COLUMNS)
        places, strata = _places(k, K, seed, block, d)
        inner = places - chunk * TILE
        sampled = (k < high) & (inner >= 0) & (inner < TILE)
        values = tl.gather(y, tl.where(sampled, inner, 0).to(tl.int32), axis=0)
        tl.store(gamma + k, strata.to(tl.float32) * values, mask=sampled)


@triton.jit(do_not_specialize=["terms", "rounding", "block", "d", "chunks"])
def _subtract(
    weights: Value,
    start: Value,
    count: Value,
    sheet: Value,
    terms: Value,
    rounding: Value,
    block: Value,
    d: Value,
    placed: Value,
    chunks: Value,
) -> None:
    """Computes w ← w − s∘(H·c/√m) for each term, over this program's chunks; ``placed`` stays zero between them."""
    mine = placed + tl.program_id(0) * TILE
    for number in range(tl.program_id(0), chunks, tl.num_programs(0)):
        chunk, at, inside = place(number, start, count)
        values = load(weights, at, inside)
        for n in range(terms):
            seed, coefficients, K, _ = nth(sheet, n)
            x = _scattered(mine, coefficients, chunk, K, seed, block, d)
            y = _hadamard(x, tl.minimum(d - chunk * TILE, TILE))
            values -= flip(tl.reshape(y, SHAPE), sign_bits(seed, chunk, 0, block, SIGNS))
        store(weights, at, inside, values, chunk, rounding, block)


@jit
def _scattered(
    placed: Value, coefficients: Value, chunk: Value, K: Value, seed: Value, block: Value, d: Value
) -> Value:
    """Returns a chunk's coefficients, each at its place, zero elsewhere: fp32 (4096,), by way of memory."""
    e = tl.arange(0, TILE)
    low, high = _near(chunk, K, d)
    for first in range(low, high, COLUMNS):
        k = first + tl.arange(0, COLUMNS)
        places, _ = _places(k, K, seed, block, d)
        inner = places - chunk * TILE
        c = tl.load(coefficients + k, mask=k < high, other=0.0)
        tl.store(placed + inner, c, mask=(k < high) & (inner >= 0) & (inner < TILE))
    tl.debug_barrier()
    x = tl.load(placed + e)
    tl.debug_barrier()
    tl.store(placed + e, tl.zeros([TILE], tl.float32))
    tl.debug_barrier()
    return x


@jit
def _near(chunk: Value, K: Value, d: Value) -> Value:
    """Returns (low, high): only strata low … high − 1 can overlap the chunk; a few of them may not."""
    density = tl.cast(K, tl.float64) / tl.cast(d, tl.float64)
    low = (chunk * TILE).to(tl.float64) * density
    high = (chunk * TILE + TILE).to(tl.float64) * density
    return tl.maximum(low.to(tl.int64) - 1, 0), tl.minimum(high.to(tl.int64) + 2, tl.cast(K, tl.int64))


@jit
def _places(k: Value, K: Value, seed: Value, block: Value, d: Value) -> Value:
    """Returns (places, strata): int64 places of coordinates ``k`` in the block, and the sizes of their strata."""
    first = k * (d // K) + k * (d % K) // K
    strata = (k + 1) * (d // K) + (k + 1) * (d % K) // K - first
    return first + draw_below(seed, k, strata, block, HADAMARD_ROWS), strata


@jit
def _hadamard(x: Value, length: Value) -> Value:
    """Returns H_m·x/√m, fp32 (4096,): butterflies of distance 1, 2, 4 …, then a multiplication, for each chunk."""
    if length == TILE:
        for stage in range(STAGES):
            x = _butterflies(x, stage)
        x *= TILE_ROOT
    else:
        differs = tl.arange(0, TILE) ^ length.to(tl.int32)
        roots = tl.full([TILE], 1.0, tl.float32)
        root, next_root = HALF_ROOT, 0.5
        for stage in range(STAGES):
            apart = differs >= 2 << stage
            x = tl.where(apart, _butterflies(x, stage), x)
            roots = tl.where(apart, root, roots)
            root, next_root = next_root, root * 0.5
        x *= roots
    return x


@jit
def _butterflies(x: Value, stage: Value) -> Value:
    """Computes (a, b) → (a + b, a − b) for all pairs with distance 2^stage."""
    e = tl.arange(0, TILE)
    return tl.gather(x, e ^ (1 << stage), axis=0) + flip(x, (e << (31 - stage)) & MINUS)
