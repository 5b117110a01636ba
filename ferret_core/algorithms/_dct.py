"""The discrete cosine transform of chunks, bit-identical on every machine.

Its matrix C, of type II and orthonormal, has entries rounded to 2⁻¹⁴. Sums of integers below 2⁵³ are exact in fp64 in
any order. A library's matrix product of such entries with others of few bits therefore has the same bits everywhere. C
Cᵀ is 1 up to 3·10⁻⁴.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ferret_core.algorithms.configs._chunks import Cut
from ferret_core.protocol.wire import Array

PRECISION = 2.0**14


def transformed(ordered: Array, cuts: list[Cut]) -> Array:
    """Returns C X Cᵀ of every chunk X, in chunk order, in the type of ``ordered``."""
    return _of_each(ordered, cuts, forward=True)


def transformed_back(coefficients: Array, cuts: list[Cut]) -> Array:
    """Returns Cᵀ Y C of every chunk Y; exact for fp64 multiples of 2⁻¹⁰ of magnitude up to 1."""
    return _of_each(coefficients, cuts, forward=False)


def _of_each(ordered: Array, cuts: list[Cut], *, forward: bool) -> Array:
    result = np.empty_like(ordered)
    for tensor in cuts:
        chunks = ordered[tensor.elements].reshape(-1, tensor.height, tensor.width)
        left, right = (cosines(side).astype(ordered.dtype) for side in (tensor.height, tensor.width))
        moved = left @ chunks @ right.T if forward else left.T @ chunks @ right
        result[tensor.elements] = moved.reshape(-1)
    return result


@cache
def cosines(side: int) -> Array:
    """Returns C, fp64 (side, side): row k is √(2/n) cos(π (2j + 1) k / 2n), row 0 is 1/√n."""
    row, column = np.ogrid[:side, :side]
    matrix = np.sqrt(2 / side) * np.cos(np.pi * (2 * column + 1) * row / (2 * side))
    matrix[0] = 1 / np.sqrt(side)
    return np.rint(matrix * PRECISION) / PRECISION
