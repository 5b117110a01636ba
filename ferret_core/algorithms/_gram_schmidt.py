"""Orthonormal columns, bit-identical on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from ferret_core.projection.deterministic_sum import lanes, pairwise
from ferret_core.protocol.wire import Array

NEGLIGIBLE = 1e-10
"""Share of a column outside the span of the previous ones that consists of rounding errors only."""


def orthonormal(factor: Array, noise: np.random.Generator) -> Array:
    """Returns fp32 (n, r): orthonormal columns that span the columns of ``factor``, by Gram–Schmidt in fp64.

    A column that adds no direction to the previous ones is skipped, and noise fills the last place: a direction that is
    0 once would stay 0. Plain products and sums in a fixed order give the same bits on every machine.
    """
    length, rank = factor.shape
    found: list[Tensor] = []
    for column in chain(factor.T, _columns(length, noise)):
        whole = torch.from_numpy(column.astype(np.float64))
        rest = whole.clone()
        for other in found * 2:  # the second pass removes the rounding errors of the first
            rest -= _dot(other, rest) * other
        if _dot(rest, rest) > NEGLIGIBLE**2 * _dot(whole, whole):
            found.append(rest / _dot(rest, rest).sqrt())
        if len(found) == rank:
            break
    return torch.stack(found, dim=1).float().numpy()


def _columns(length: int, noise: np.random.Generator) -> Iterator[Array]:
    """Yields uniformly distributed columns without end; no machine's logarithm is involved."""
    while True:
        yield noise.random(length) - 0.5


def _dot(left: Tensor, right: Tensor) -> Tensor:
    return pairwise(lanes(left * right))
