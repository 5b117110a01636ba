"""T on the CPU: every entry is drawn and used in registers and never stored, four per Philox call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from numpy import float32, int32, uint32
from torch import Tensor

from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels.base import ReconstructionTerm
from ferret_core.projection.kernels.cpu._jit import compiled
from ferret_core.projection.kernels.cpu._philox import keys, philox, stream
from ferret_core.projection.kernels.cpu._threads import APPLIED, share_out, stretches_of_tiles, summed
from ferret_core.projection.kernels.cpu._tile_io import load_difference, opened, packed, rounding_of, store, stored
from ferret_core.projection.philox import TILE, Tag
from ferret_core.projection.variance import truncated_normal_moments

LANES = 64
GROUPS = TILE // 4
STEP, LAST, ONE = float32(2.0**-23), float32(1 - 2.0**-24), float32(1)


@final
class Kernel:
    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int, *, start: int = 0) -> Tensor:
        draws = keys([seed])[0], stream(block.id, Tag.TRUNCATED_NORMAL), *_constants(block.size)
        products = summed(_project, (stored(before), stored(after), start), draws, K)
        rho, _ = truncated_normal_moments(block.size)
        return torch.from_numpy(products * float32(1 / (rho * K)))

    def apply_(
        self, weights: Tensor, block: Block, terms: Sequence[ReconstructionTerm], *, start: int = 0, rounding: int = 0
    ) -> None:
        sent = packed(terms)
        if sent is None:
            return
        draws = stream(block.id, Tag.TRUNCATED_NORMAL), *_constants(block.size)
        target = stored(weights), start
        tasks = [
            (*target, first, last, *sent, *draws, *rounding_of(rounding, block.id))
            for first, last in stretches_of_tiles(start, len(weights), APPLIED)
        ]
        share_out(_apply, tasks)


def _constants(d: int) -> tuple[np.float32, np.float32]:
    """Returns ε and ε²/6, rounded to fp32 once."""
    return float32(1 / math.sqrt(d)), float32(1 / (6 * d))


@compiled
def _value(word: Any, epsilon: Any, a: Any) -> Any:
    """Returns u·ε·(1 − a(1 − u²)), every operation rounded; the operations for u are exact."""
    u = float32(int32(word >> uint32(8))) * STEP - LAST
    return (u * epsilon) * (ONE - (ONE - u * u) * a)


@compiled
def _project(
    before: Any, after: Any, start: Any, first: Any, last: Any, key: Any, stream: Any, epsilon: Any, a: Any, gamma: Any
) -> None:
    """Adds Vᵀ(before − after) over tiles first … last − 1 to ``gamma``; products are summed in lanes."""
    delta, words = np.empty((4, GROUPS), float32), np.empty((4, GROUPS), uint32)
    elements, lanes = np.empty(TILE, float32), np.empty(LANES, float32)
    for tile in range(first, last):
        load_difference(elements, before, after, tile * TILE - start)
        for g in range(GROUPS):
            for j in range(4):
                delta[j, g] = elements[4 * g + j]
        for k in range(len(gamma)):
            _draw_column(words, tile, k, key, stream)
            gamma[k] += _dot(delta.reshape((-1, LANES)), words.reshape((-1, LANES)), lanes, epsilon, a)


@compiled
def _draw_column(words: Any, tile: Any, k: Any, key: Any, stream: Any) -> None:
    """words[j, g] ← the word of element 4g + j of the tile in column k."""
    base = uint32(tile * GROUPS)
    for g in range(GROUPS):
        words[0, g], words[1, g], words[2, g], words[3, g] = philox(
            uint32(base + uint32(g)), uint32(k), stream, key[0], key[1]
        )


@compiled
def _dot(delta: Any, words: Any, lanes: Any, epsilon: Any, a: Any) -> Any:
    for lane in range(LANES):
        lanes[lane] = 0
    for n in range(len(delta)):
        for lane in range(LANES):
            lanes[lane] += _value(words[n, lane], epsilon, a) * delta[n, lane]
    total = float32(0)
    for lane in range(LANES):
        total += lanes[lane]
    return total


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
    stream: Any,
    epsilon: Any,
    a: Any,
    rounding_key: Any,
    rounding_stream: Any,
) -> None:
    """weights ← weights − V·c term by term over tiles first … last − 1, k ascending, products rounded before sums."""
    buffer, chances = np.zeros(TILE, float32), np.empty(TILE, uint32)
    sums, words = np.empty((4, GROUPS), float32), np.empty((4, GROUPS), uint32)
    for tile in range(first, last):
        values = opened(weights, tile * TILE - start, buffer)
        for n in range(len(counts)):
            sums[:] = 0
            for k in range(counts[n]):
                _draw_column(words, tile, k, keys[n], stream)
                _add_column(sums, words, coefficients[offsets[n] + k], epsilon, a)
            for g in range(GROUPS):
                for j in range(4):
                    values[4 * g + j] -= sums[j, g]
        store(weights, tile * TILE - start, values, chances, tile, rounding_key, rounding_stream)


@compiled
def _add_column(sums: Any, words: Any, c: Any, epsilon: Any, a: Any) -> None:
    for j in range(4):
        for g in range(GROUPS):
            sums[j, g] += c * _value(words[j, g], epsilon, a)
