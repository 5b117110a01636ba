"""Discrete Gaussian noise from the system's entropy.

P(x) ∝ exp(−x² / 2σ²) over the integers (Canonne, Kamath and Steinke, NeurIPS 2020). A draw inverts the distribution
function at a uniform 128-bit number, so no floating-point noise reveals the value it was added to (Mironov, CCS 2012).
The table differs from the exact distribution by at most 2⁻¹²⁸ per entry.
"""

from __future__ import annotations

import math
import secrets
from bisect import bisect_right
from decimal import Decimal, localcontext
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BITS = 128
WORD = 64
DIGITS = 60
CHUNK = 1 << 18
"""Draws at a time: 16 bytes of entropy each."""


class NoiseTable(NamedTuple):
    """2¹²⁸ · P(X ≤ x) for x = −``reach`` … ``reach`` − 1, as integers and their upper 64 bits."""

    reach: int
    exact: list[int]
    upper: NDArray[np.uint64]

    def look_up(self, uniform: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Returns the integers at uniform numbers, upper and lower words (n, 2)."""
        upper = uniform[:, 0]
        found = np.searchsorted(self.upper, upper, side="left")
        for draw in np.flatnonzero(found != np.searchsorted(self.upper, upper, side="right")):
            found[draw] = bisect_right(self.exact, (int(uniform[draw, 0]) << WORD) + int(uniform[draw, 1]))
        return found.astype(np.int64) - self.reach


def discrete_gaussian(deviation: float, count: int) -> NDArray[np.int64]:
    """Draws ``count`` integers with parameter σ = ``deviation``."""
    table = noise_table(deviation)
    parts = [
        table.look_up(np.frombuffer(secrets.token_bytes(16 * min(CHUNK, count - start)), np.uint64).reshape(-1, 2))
        for start in range(0, count, CHUNK)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


@lru_cache(maxsize=4)
def noise_table(deviation: float) -> NoiseTable:
    """Returns the table for σ = ``deviation``. Entries beyond ``reach`` have less than 2⁻¹²⁸ of the probability."""
    reach = math.ceil(deviation * math.sqrt(2 * math.log(2) * (BITS + 8))) + 1
    with localcontext() as context:
        context.prec = DIGITS
        twice = 2 * Decimal(deviation) ** 2
        half = [(-Decimal(x * x) / twice).exp() for x in range(1, reach + 1)]
        below = list(accumulate([*reversed(half), Decimal(1), *half]))
        exact = [int(each / below[-1] * (1 << BITS)) for each in below[:-1]]
    return NoiseTable(reach, exact, np.array([each >> WORD for each in exact], np.uint64))
