"""Sums with bits that depend on neither the thread count nor the chunk size.

``torch.sum`` may split its work by threads. Here a sum is a fixed tree of elementwise additions: ``fold`` within a row
with a power of two as its length, then pairs of neighbouring rows, where an odd last row moves up unchanged.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

LANES = 1024


def fold(values: Tensor) -> Tensor:
    """Sums over the last dimension, a power of two long: adds the upper half to the lower half until one is left."""
    while (width := values.shape[-1] // 2) > 0:
        values = values[..., :width] + values[..., width:]
    return values[..., 0]


def lanes(values: Tensor) -> Tensor:
    """Maps (…, n) → (…, ⌈n/1024⌉): sums of consecutive stretches of 1024, the last one padded with zeros."""
    return fold(pad(values, (0, -values.shape[-1] % LANES)).unflatten(-1, (-1, LANES)))


def pairwise(rows: Tensor) -> Tensor:
    """Sums over the first dimension: neighbours with neighbours, level by level; an odd last row moves up unchanged."""
    while (pairs := len(rows) // 2) > 0:
        sums = rows[0 : 2 * pairs : 2] + rows[1 : 2 * pairs : 2]
        rows = torch.cat([sums, rows[2 * pairs :]])
    return rows[0]


class PairwiseSum:
    """``pairwise`` over rows that arrive in chunks, with the same bits as over all of them together.

    Every chunk except the last must have the same power of two of rows.
    """

    def __init__(self) -> None:
        self._sums: list[tuple[int, Tensor]] = []

    def add(self, rows: Tensor) -> None:
        level, total = 0, pairwise(rows)
        while self._sums and self._sums[-1][0] == level:
            total = self._sums.pop()[1] + total
            level += 1
        self._sums.append((level, total))

    def total(self) -> Tensor:
        """Returns the sum; requires at least one row."""
        _, total = self._sums[-1]
        for _, left in reversed(self._sums[:-1]):
            total = left + total
        return total
