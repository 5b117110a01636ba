"""R on the CPU: signs are unpacked 32 elements at a time and never stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from numpy import float32, uint32
from torch import Tensor

from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels.base import ReconstructionTerm
from ferret_core.projection.kernels.cpu._jit import compiled
from ferret_core.projection.kernels.cpu._philox import FOURS, MINUS, ROWS, add_fours, draw_signs, fold, keys, stream
from ferret_core.projection.kernels.cpu._threads import APPLIED, share_out, stretches_of_tiles, summed
from ferret_core.projection.kernels.cpu._tile_io import load_difference, opened, packed, rounding_of, store, stored
from ferret_core.projection.philox import LANES, TILE, Tag


@final
class Kernel:
    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int, *, start: int = 0) -> Tensor:
        draws = keys([seed])[0], stream(block.id, Tag.DENSE_SIGNS)
        return torch.from_numpy(summed(_project, (stored(before), stored(after), start), draws, K) * float32(1 / K))

    def apply_(
        self, weights: Tensor, block: Block, terms: Sequence[ReconstructionTerm], *, start: int = 0, rounding: int = 0
    ) -> None:
        sent = packed(terms)
        if sent is None:
            return
        target, signs = (stored(weights), start), stream(block.id, Tag.DENSE_SIGNS)
        bits = sent._replace(coefficients=sent.coefficients.view(uint32))  # pyrefly: ignore[bad-argument-type]
        tasks = [
            (*target, first, last, *bits, signs, *rounding_of(rounding, block.id))
            for first, last in stretches_of_tiles(start, len(weights), APPLIED)
        ]
        share_out(_apply, tasks)


@compiled
def _project(before: Any, after: Any, start: Any, first: Any, last: Any, key: Any, signs: Any, gamma: Any) -> None:
    """Adds Vᵀ(before − after) over tiles first … last − 1 to ``gamma``."""
    words, delta = np.empty((4, LANES), uint32), np.empty(TILE, float32)
    fours, sums = np.empty(TILE // 4, float32), np.empty((1, 1), float32)
    for tile in range(first, last):
        load_difference(delta, before, after, tile * TILE - start)
        for k in range(len(gamma)):
            draw_signs(words, tile, uint32(k), signs, key)
            add_fours(fours.reshape((4, 8, LANES)), delta.reshape(FOURS), words)
            fold(sums, 0, fours, TILE // 4, 10)
            gamma[k] += sums[0, 0]


@compiled
def _apply(
    weights: Any,
    start: Any,
    first: Any,
    last: Any,
    coefficients: Any,
    offsets: Any,
    counts: Any,
    keys: Any,
    signs: Any,
    rounding_key: Any,
    rounding_stream: Any,
) -> None:
    """weights ← weights − V·c term by term over tiles first … last − 1, k ascending."""
    buffer, sums, chances = np.zeros(TILE, float32), np.empty(ROWS, float32), np.empty(TILE, uint32)
    words, moved = np.empty((4, LANES), uint32), sums.reshape(TILE)
    for tile in range(first, last):
        values = opened(weights, tile * TILE - start, buffer)
        for n in range(len(counts)):
            sums[:] = 0
            for k in range(counts[n]):
                draw_signs(words, tile, uint32(k), signs, keys[n])
                _add_column(sums, words, coefficients[offsets[n] + k])
            for i in range(TILE):
                values[i] -= moved[i]
        store(weights, tile * TILE - start, values, chances, tile, rounding_key, rounding_stream)


@compiled
def _add_column(sums: Any, words: Any, c: Any) -> None:
    for w in range(4):
        for bit in range(32):
            for lane in range(LANES):
                sums[w, bit, lane] += uint32(c ^ uint32(words[w, lane] << uint32(bit)) & MINUS).view(float32)
