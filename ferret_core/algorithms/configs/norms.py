"""Norms of a contribution: the length of its move of the model, one norm per part, in the units of the weights.

The bounds compare a round's participants by these norms. They are computed from the sent numbers, without rebuilding an
update, so they cost next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ferret_core.models.shapes import Shapes, sizes
from ferret_core.protocol.buffers import places
from ferret_core.protocol.wire import Array


class Norms(NamedTuple):
    """``values``: fp64 (L,), the L2 norm of each part; ``sizes``: fp64 (L,), the number of weights that the part moves.

    A size of 0 marks a part that moves no weights, e.g. a control variate. ``noise``: fp64 (L,), the L2 norm of the
    error of random directions in the part; 0 without random directions.
    """

    values: Array
    sizes: Array
    noise: Array

    @property
    def total(self) -> float:
        return float(np.sqrt(np.square(self.values).sum()))

    @classmethod
    def of(cls, values: Iterable[float], sizes: Iterable[int], noise: Iterable[float] | None = None) -> Norms:
        lengths = np.array(list(values), np.float64)
        errors = np.zeros_like(lengths) if noise is None else np.array(list(noise), np.float64)
        return cls(lengths, np.array(list(sizes), np.float64), errors)


def norm(vector: Array) -> float:
    """Returns ‖v‖₂ in fp64, which no fp32 vector overflows."""
    return math.sqrt(sum(float(np.square(vector[place], dtype=np.float64).sum()) for place in places(vector)))


def dense_norms(update: Array, shapes: Shapes) -> Norms:
    """Returns the norms of a vector (d,) over the parameters in canonical order, one per tensor."""
    lengths = list(sizes(shapes).values())
    return Norms.of(map(norm, np.split(update, np.cumsum(lengths)[:-1])), lengths)
