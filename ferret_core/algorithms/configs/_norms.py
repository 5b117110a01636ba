"""How far a contribution would move the model: one norm for each part of it, in the units of the weights.

A round's participants are held against one another by these. They come from the numbers that were sent, without
rebuilding an update, so they cost next to nothing.
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
    """``values``: fp64 (L,), the L2 norm of each part; ``sizes``: fp64 (L,), how many weights the part moves.

    A size of 0 is that of a part that moves none, e.g. a control variate. ``noise``: fp64 (L,), the L2 norm of what in
    it is the error of random directions; 0 where none are used.
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
    """‖v‖₂ in fp64, which no fp32 vector takes beyond its range."""
    return math.sqrt(sum(float(np.square(vector[place], dtype=np.float64).sum()) for place in places(vector)))


def dense_norms(update: Array, shapes: Shapes) -> Norms:
    """Those of a vector (d,) over the parameters in canonical order: one for each tensor."""
    lengths = list(sizes(shapes).values())
    return Norms.of(map(norm, np.split(update, np.cumsum(lengths)[:-1])), lengths)
