"""Count sketches on the CPU: every row adds each entry, with a sign, to one of its columns; all are drawn from a seed.

Moses Charikar, Kevin Chen, Martin Farach-Colton, "Finding frequent items in data streams", ICALP 2002,
https://doi.org/10.1016/S0304-3975(03)00400-6. Entry i in row r has word ⌊e/256⌋ of group 256·⌊i/1024⌋ + e mod 256 with
e = i mod 1024, in row r of the signs' stream: its lowest bit is set for minus, the other 31 choose the column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import float32, int64, uint32, uint64
from numpy.typing import NDArray

from ferret_core.projection.kernels.cpu._jit import compiled
from ferret_core.projection.kernels.cpu._philox import keys, philox, stream
from ferret_core.projection.kernels.cpu._threads import ranges, share_out
from ferret_core.projection.philox import Tag

GROUPS = 256
TILE = 4 * GROUPS
STRETCH = 64 * TILE

Vector = NDArray[np.float32]


def sketch(vector: Vector, rows: int, columns: int, seed: int) -> Vector:
    """Returns fp32 (rows, columns): linear in ``vector`` up to rounding, the same bits for any number of threads."""
    table = np.zeros((rows, columns), float32)
    share_out(_add, [(table[row], vector, uint32(row), *_draws(seed)) for row in range(rows)])
    return table


def estimates(table: Vector, length: int, seed: int) -> Vector:
    """Returns fp32 (length,): for every entry the median over the rows of its column's value, with its sign."""
    found = np.empty(length, float32)
    share_out(_estimate, [(found[i:j], i // TILE, table, *_draws(seed)) for i, j in ranges(length, STRETCH)])
    return found


def _draws(seed: int) -> tuple[Any, np.uint32]:
    return keys([seed])[0], stream(0, Tag.SIGNS)


@compiled
def _draw(words: Any, tile: Any, row: Any, key: Any, stream: Any) -> None:
    """A tile's words: uint32 (4, 256)."""
    for group in range(GROUPS):
        four = philox(uint32(tile * GROUPS + group), row, stream, key[0], key[1])
        for w in range(4):
            words[w, group] = four[w]


@compiled
def _column(word: Any, columns: Any) -> Any:
    return int64(uint64(word >> uint32(1)) * uint64(columns) >> uint64(31))


@compiled
def _add(sums: Any, vector: Any, row: Any, key: Any, stream: Any) -> None:
    words = np.empty((4, GROUPS), uint32)
    flat = words.reshape(TILE)
    for tile in range(-(-len(vector) // TILE)):
        _draw(words, tile, row, key, stream)
        part = vector[tile * TILE : (tile + 1) * TILE]
        for i in range(len(part)):
            sums[_column(flat[i], len(sums))] += -part[i] if flat[i] & uint32(1) else part[i]


@compiled
def _estimate(found: Any, first: Any, table: Any, key: Any, stream: Any) -> None:
    """Estimates the entries from tile ``first`` on."""
    rows, columns = table.shape
    words, values, ordered = np.empty((4, GROUPS), uint32), np.empty((rows, TILE), float32), np.empty(rows, float32)
    flat = words.reshape(TILE)
    for tile in range(-(-len(found) // TILE)):
        part = found[tile * TILE : (tile + 1) * TILE]
        for row in range(rows):
            _draw(words, first + tile, uint32(row), key, stream)
            for i in range(len(part)):
                there = table[row, _column(flat[i], columns)]
                values[row, i] = -there if flat[i] & uint32(1) else there
        for i in range(len(part)):
            part[i] = _median(values, i, ordered)


@compiled
def _median(values: Any, i: Any, ordered: Any) -> Any:
    """Returns the median of column ``i``; the mean of the middle two for an even number."""
    rows = len(ordered)
    for row in range(rows):
        value, place = values[row, i], row
        while place > 0 and ordered[place - 1] > value:
            ordered[place] = ordered[place - 1]
            place -= 1
        ordered[place] = value
    return float32(0.5) * ordered[(rows - 1) // 2] + float32(0.5) * ordered[rows // 2]
