"""Philox-4x32-10; a loop that calls it over groups is vectorised. A tile of 4,096 elements has 128 words of signs: word
[w, lane] holds one bit for each of 32 rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import float32, uint32, uint64
from numpy.typing import NDArray

from ferret_core.projection import FORMAT_VERSION
from ferret_core.projection.kernels.cpu._jit import compiled
from ferret_core.projection.philox import KEY_STEPS, LANES, MULTIPLIERS, ROUNDS, Tag
from ferret_core.projection.philox import LOW as LOW_HALF

M0, M1 = uint64(MULTIPLIERS[0] + 2**32), uint64(MULTIPLIERS[1] + 2**32)
STEP0, STEP1 = uint64(KEY_STEPS[0]), uint64(KEY_STEPS[1])
VERSION = uint64(FORMAT_VERSION)
LOW, HALF = uint64(LOW_HALF), uint64(32)
MINUS = uint32(0x80000000)
ROWS = (4, 32, LANES)
"""Shape of a tile's elements by word, bit and lane of their signs."""
FOURS = (4, 8, 4, LANES)
"""The same with the rows in groups of four."""


@compiled
def philox(c0: Any, c1: Any, c2: Any, k0: Any, k1: Any) -> tuple[Any, Any, Any, Any]:
    """Returns four words, uint32, for the counter (c0, c1, c2, format version) under the key (k0, k1).

    Words are in 64-bit lanes with arbitrary upper halves: only products use the lower half alone. Cutting every word to
    32 bits would cost more than the multiplications.
    """
    c0, c1, c2, c3 = uint64(c0), uint64(c1), uint64(c2), VERSION
    k0, k1 = uint64(k0), uint64(k1)
    for _ in range(ROUNDS):
        p0, p1 = M0 * (c0 & LOW), M1 * (c2 & LOW)
        c0, c1, c2, c3 = (p1 >> HALF) ^ c1 ^ k0, p1, (p0 >> HALF) ^ c3 ^ k1, p0
        k0, k1 = k0 + STEP0, k1 + STEP1
    return uint32(c0), uint32(c1), uint32(c2), uint32(c3)


def keys(seeds: Sequence[int]) -> NDArray[np.uint32]:
    """Returns the (low, high) half of each 64-bit seed: uint32 (n, 2)."""
    return np.array([(seed & LOW_HALF, seed >> 32) for seed in seeds], uint32).reshape(-1, 2)


def stream(block_id: int, tag: Tag) -> np.uint32:
    """Returns the third counter word."""
    return uint32(block_id | tag << 24)


@compiled
def draw_signs(words: Any, tile: Any, row: Any, stream: Any, key: Any) -> None:
    """Fills ``words``, uint32 (4, 32), for the tile's number; bits count from the top, 1 is minus."""
    base = uint32(tile * LANES)
    for lane in range(LANES):
        words[0, lane], words[1, lane], words[2, lane], words[3, lane] = philox(
            uint32(base + uint32(lane)), row, stream, key[0], key[1]
        )


@compiled
def signed(value: Any, word: Any, bit: Any) -> Any:
    """Applies the sign in ``bit`` of ``word`` to the fp32 value."""
    return uint32(float32(value).view(uint32) ^ uint32(word << uint32(bit)) & MINUS).view(float32)


@compiled
def put_signs(bits: Any, words: Any) -> None:
    """Applies signs to a tile's values, as integers (4, 32, 32), in place."""
    for w in range(4):
        for bit in range(32):
            for lane in range(LANES):
                bits[w, bit, lane] ^= uint32(words[w, lane] << uint32(bit)) & MINUS


@compiled
def add_fours(sums: Any, delta: Any, words: Any) -> None:
    """Computes sums (4, 8, 32) ← each lane's sum over four rows of Δ (4, 8, 4, 32) with signs applied."""
    for w in range(4):
        for four in range(8):
            for lane in range(LANES):
                word = uint32(words[w, lane] << uint32(4 * four))
                x0, x1 = signed(delta[w, four, 0, lane], word, 0), signed(delta[w, four, 1, lane], word, 1)
                x2, x3 = signed(delta[w, four, 2, lane], word, 2), signed(delta[w, four, 3, lane], word, 3)
                sums[w, four, lane] = (x0 + x1) + (x2 + x3)


@compiled
def fold(sums: Any, row: Any, values: Any, count: Any, times: Any) -> None:
    """Computes sums[row, j] ← the sum of 2^times neighbours among the first ``count`` values, pair by pair.

    The values are overwritten.
    """
    for _ in range(times - 1):
        count //= 2
        for i in range(count):
            values[i] = values[2 * i] + values[2 * i + 1]
    if times == 0:
        for i in range(count):
            sums[row, i] = values[i]
    else:
        for i in range(count // 2):
            sums[row, i] = values[2 * i] + values[2 * i + 1]
