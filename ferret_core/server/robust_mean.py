"""Coordinate-wise median and trimmed mean of a round's contributions, for algorithms with comparable numbers.

Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018,
https://arxiv.org/abs/1803.01498, definitions 1 and 2. All participants count the same. Contributions are read once for
each range of coordinates that fits into memory for all of them; one contribution is held at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from ferret_core.protocol.rounding import ceil_share
from ferret_core.protocol.spec import RobustSpec
from ferret_core.protocol.wire import Array, Arrays

HELD_NUMBERS = 1 << 26
"""fp32 values of all participants held at a time: 256 MB."""


def robust_mean(spec: RobustSpec, received: Callable[[], Iterable[Arrays]], count: int) -> dict[str, Array]:
    """Returns the robust mean, fp32, of each array that all ``count`` participants sent; each call of ``received``
    restarts the iteration.
    """
    shapes = {name: array.shape for name, array in next(iter(received())).items()}
    width = max(1, HELD_NUMBERS // count)
    return {
        name: np.concatenate(
            [
                _reduced(spec, np.stack([sent[name].reshape(-1)[begin : begin + width] for sent in received()]))
                for begin in range(0, max(1, math.prod(shape)), width)
            ]
        ).reshape(shape)
        for name, shape in shapes.items()
    }


def trimmed(trim: float, count: int) -> int:
    """Returns the number of maximum and of minimum values to leave out: ⌈trim · count⌉, with at least one left."""
    return min(ceil_share(trim, count), (count - 1) // 2)


def _reduced(spec: RobustSpec, rows: Array) -> Array:
    """Returns fp32 (n,) from ``rows``, fp32 (participants, n)."""
    ordered = np.sort(rows, axis=0)
    out = (len(rows) - 1) // 2 if spec.rule == "median" else trimmed(spec.trim, len(rows))
    return ordered[out : len(rows) - out].astype(np.float64).mean(axis=0).astype(np.float32)
