"""H on the CPU: a chunk is transformed within the first-level cache, as a matrix, alternately by columns and rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from numpy import float32, int64, uint32, uint64
from torch import Tensor

from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels.base import ReconstructionTerm
from ferret_core.projection.kernels.cpu._jit import compiled
from ferret_core.projection.kernels.cpu._philox import ROWS, draw_signs, keys, philox, put_signs, stream
from ferret_core.projection.kernels.cpu._threads import share_out, stretches_of_tiles
from ferret_core.projection.kernels.cpu._tile_io import load_difference, opened, packed, rounding_of, store, stored
from ferret_core.projection.philox import LANES, TILE, Tag

TILES = 64
DIGITS = TILE.bit_length()
FACTORS = np.array([1 / math.sqrt(1 << digit) for digit in range(DIGITS)], float32)
"""1/√m of a chunk of m = 2^digit elements."""


@final
class Kernel:
    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int, *, start: int = 0) -> Tensor:
        """Projects; each coordinate has its place in one tile, and therefore one writer."""
        gamma = np.zeros(K, float32)
        source = stored(before), stored(after), start, block.size
        draws = keys([seed])[0], stream(block.id, Tag.SIGNS), stream(block.id, Tag.HADAMARD_ROWS)
        share_out(
            _project, [(*source, *tiles, *draws, gamma) for tiles in stretches_of_tiles(start, len(after), TILES)]
        )
        return torch.from_numpy(gamma)

    def apply_(
        self, weights: Tensor, block: Block, terms: Sequence[ReconstructionTerm], *, start: int = 0, rounding: int = 0
    ) -> None:
        sent = packed(terms)
        if sent is None:
            return
        draws = stream(block.id, Tag.SIGNS), stream(block.id, Tag.HADAMARD_ROWS)
        target = stored(weights), start, block.size
        tasks = [
            (*target, *tiles, *sent, *draws, *rounding_of(rounding, block.id))
            for tiles in stretches_of_tiles(start, len(weights), TILES)
        ]
        share_out(_apply, tasks)


@compiled
def _project(
    before: Any, after: Any, start: Any, d: Any, first: Any, last: Any, key: Any, signs: Any, rows: Any, gamma: Any
) -> None:
    """Adds n·y_p to γ_k for the coordinates with their place p in tiles first … last − 1."""
    words, y, scratch = np.empty((4, LANES), uint32), np.empty(TILE, float32), np.empty(TILE, float32)
    for tile in range(first, last):
        load_difference(y, before, after, tile * TILE - start)
        draw_signs(words, tile, uint32(0), signs, key)
        put_signs(y.view(uint32).reshape(ROWS), words)
        _transform(y, scratch, d - tile * TILE)
        for k in range(*_near(tile, d, len(gamma))):
            place, n = _place(k, d, len(gamma), rows, key)
            if place // TILE == tile:
                gamma[k] += float32(n) * y[place % TILE]


@compiled
def _apply(
    weights: Any,
    start: Any,
    d: Any,
    first: Any,
    last: Any,
    coefficients: Any,
    offsets: Any,
    counts: Any,
    keys: Any,
    signs: Any,
    rows: Any,
    rounding_key: Any,
    rounding_stream: Any,
) -> None:
    """weights ← weights − V·c term by term over tiles first … last − 1."""
    words, chances = np.empty((4, LANES), uint32), np.empty(TILE, uint32)
    buffer, placed, scratch = np.zeros(TILE, float32), np.empty(TILE, float32), np.empty(TILE, float32)
    for tile in range(first, last):
        values = opened(weights, tile * TILE - start, buffer)
        for n in range(len(counts)):
            placed[:] = 0
            for k in range(*_near(tile, d, counts[n])):
                place, _ = _place(k, d, counts[n], rows, keys[n])
                if place // TILE == tile:
                    placed[place % TILE] = coefficients[offsets[n] + k]
            _transform(placed, scratch, d - tile * TILE)
            draw_signs(words, tile, uint32(0), signs, keys[n])
            put_signs(placed.view(uint32).reshape(ROWS), words)
            for i in range(TILE):
                values[i] -= placed[i]
        store(weights, tile * TILE - start, values, chances, tile, rounding_key, rounding_stream)


@compiled
def _near(tile: Any, d: Any, K: Any) -> Any:
    """Returns the range of coordinates with strata that overlap the tile."""
    return ((tile * TILE + 1) * K - 1) // d, (min((tile + 1) * TILE, d) * K - 1) // d + 1


@compiled
def _place(k: Any, d: Any, K: Any, rows: Any, key: Any) -> Any:
    """Returns the place of coordinate k among the d transformed values, and the size of its stratum."""
    first = k * (d // K) + k * (d % K) // K
    n = (k + 1) * (d // K) + (k + 1) * (d % K) // K - first
    word = uint64(philox(uint32(k // 4), uint32(0), rows, key[0], key[1])[k % 4])
    high, low = uint64(n) >> uint64(32), uint64(n) & uint64(0xFFFFFFFF)
    return first + int64(word * high + (word * low >> uint64(32))), n


@compiled
def _transform(values: Any, scratch: Any, left: Any) -> None:
    """Computes H·x/√m of each chunk of a tile with ``left`` elements of the block from its start on."""
    begin = 0
    for digit in range(DIGITS - 1, -1, -1):
        if (min(left, TILE) >> digit) & 1:
            m = 1 << digit
            _hadamard(values[begin : begin + m], scratch[:m], digit)
            for i in range(begin, begin + m):
                values[i] *= FACTORS[digit]
            begin += m


@compiled
def _hadamard(x: Any, scratch: Any, digits: Any) -> None:
    """Computes butterflies of distance 1, 2, 4 …, in place: within a row, then between rows by the transpose."""
    low = 1 << (digits // 2)
    high = 1 << (digits - digits // 2)
    matrix, transpose = x.reshape((high, low)), scratch.reshape((low, high))
    for i in range(low):
        for j in range(high):
            transpose[i, j] = matrix[j, i]
    _butterflies(transpose)
    for j in range(high):
        for i in range(low):
            matrix[j, i] = transpose[i, j]
    _butterflies(matrix)


@compiled
def _butterflies(rows: Any) -> None:
    h = 1
    while h < len(rows):
        for first in range(0, len(rows), 2 * h):
            for i in range(first, first + h):
                a, b = rows[i], rows[i + h]
                for j in range(len(a)):
                    a[j], b[j] = a[j] + b[j], a[j] - b[j]
        h *= 2
