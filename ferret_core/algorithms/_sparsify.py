"""Common parts of compression: error memory, an update's largest entries, means of sparse updates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferret_core.algorithms.base import State
from ferret_core.models.shapes import Shapes
from ferret_core.protocol.wire import Array, Arrays


def with_error(update: Array, memory: Arrays, decay: float = 1.0) -> Array:
    """Returns Δ + decay · e, fp32 (d,): the update plus the participant's unsent rest of earlier ones."""
    return update + np.float32(decay) * memory["error"] if "error" in memory else update


def largest(vector: Array, K: int) -> Array:
    """Returns ascending indices, int64 (K,), of the entries of largest magnitude; of equal ones the first."""
    magnitudes = np.abs(vector)
    last = np.partition(magnitudes, -K)[-K]
    above = np.flatnonzero(magnitudes > last)
    equal = np.flatnonzero(magnitudes == last)[: K - len(above)]
    return np.sort(np.concatenate([above, equal]))


def scattered(indices: Array, values: Array, d: int) -> Array:
    """Returns fp32 (d,): ``values`` at ``indices``, zero elsewhere."""
    dense = np.zeros(d, np.float32)
    dense[indices] = values
    return dense


def mean_over_senders(
    indices: Sequence[Array], values: Sequence[Array], weights: Sequence[float]
) -> tuple[Array, Array]:
    """Returns the ascending indices that were sent, and the mean of ``values`` there, fp64, over their senders only.

    A participant's ``values`` are already multiplied by its weight.
    """
    union, places = np.unique(np.concatenate(indices), return_inverse=True)
    senders = np.repeat(weights, [len(sent) for sent in indices])
    return union, np.bincount(places, np.concatenate(values)) / np.bincount(places, senders)


def matrices_state(shapes: Shapes) -> State:
    """Returns each tensor as a matrix, shape[0] × rest; a vector is one row: uint64 (tensors, 2)."""
    sides = [(shape[0] if len(shape) > 1 else 1, shape) for shape in shapes.values()]
    return {"matrices": np.array([(rows, np.prod(shape, dtype=np.int64) // rows) for rows, shape in sides], np.uint64)}


def matrices_of(state: State) -> Shapes:
    """Returns the tensors of ``matrices_state``, by their numbers."""
    return {str(number): (int(rows), int(columns)) for number, (rows, columns) in enumerate(state["matrices"])}
