"""Philox-4x32-10; a loop that calls it over groups is vectorised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import uint32, uint64
from numpy.typing import NDArray

from ferret_core.projection import FORMAT_VERSION
from ferret_core.projection.kernels.cpu._jit import compiled
from ferret_core.projection.philox import KEY_STEPS, MULTIPLIERS, ROUNDS, Tag
from ferret_core.projection.philox import LOW as LOW_HALF

M0, M1 = uint64(MULTIPLIERS[0] + 2**32), uint64(MULTIPLIERS[1] + 2**32)
STEP0, STEP1 = uint64(KEY_STEPS[0]), uint64(KEY_STEPS[1])
VERSION = uint64(FORMAT_VERSION)
LOW, HALF = uint64(LOW_HALF), uint64(32)


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
