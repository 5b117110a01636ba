"""Units' gradients as integers of bounded length: the sensitivity is exact, free of rounding in floating point."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
SHRINK = 0.99


def to_lattice(vector: NDArray[np.floating[Any]]) -> Integers:
    """Scales ``vector`` (K,) to length √K and rounds it to integers of at most that length.

    Each unit counts with its direction alone (Bu et al., "Automatic Clipping", NeurIPS 2023), so no bound on gradients
    is needed. Rounding lengthens a vector; it is shortened by 1 % until ‖v‖² ≤ K, in exact integer
    arithmetic. A vector of zeros, or one that is not finite, gives zeros: an error would reveal the unit.
    """
    K = len(vector)
    greatest = float(np.abs(vector).max(initial=0.0))
    if not (0 < greatest < np.inf):
        return np.zeros(K, np.int64)
    scaled = vector.astype(np.float64) / greatest
    scaled *= np.sqrt(K) / np.linalg.norm(scaled)
    rounded = np.rint(scaled).astype(np.int64)
    while int(rounded @ rounded) > K:
        scaled *= SHRINK
        rounded = np.rint(scaled).astype(np.int64)
    return rounded
