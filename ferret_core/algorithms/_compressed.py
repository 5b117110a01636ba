"""What the algorithms that compress an update share: error memory, and an update's largest entries."""

from __future__ import annotations

import numpy as np

from ferret_core.protocol.wire import Array, Arrays


def with_error(update: Array, memory: Arrays) -> Array:
    """Δ + e, fp32 (d,): the update and what the participant could not send of the ones before."""
    return update + memory["error"] if "error" in memory else update


def largest(vector: Array, K: int) -> Array:
    """Ascending indices, int64 (K,), of the entries of largest magnitude; the first of equal ones."""
    magnitudes = np.abs(vector)
    last = np.partition(magnitudes, -K)[-K]
    above = np.flatnonzero(magnitudes > last)
    equal = np.flatnonzero(magnitudes == last)[: K - len(above)]
    return np.sort(np.concatenate([above, equal]))


def scattered(indices: Array, values: Array, d: int) -> Array:
    """fp32 (d,): ``values`` at ``indices``, zero elsewhere."""
    dense = np.zeros(d, np.float32)
    dense[indices] = values
    return dense
