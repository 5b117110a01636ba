"""Compact encoding of whole numbers from −s to s: digits of base 2s + 1, packed into words of 64 bits.

A word holds p = ⌊64 / log₂(2s + 1)⌋ numbers, the first in the lowest digit; 2s + 1 is added to negative numbers. For s
= 1 that is 1.6 bits per number, where three values need 1.585. The last word is padded with zeros.
"""

from __future__ import annotations

import numpy as np

from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.wire import Array, malformed

WORD = np.dtype(np.uint64)


def level_layout(s: int, count: int) -> Layout:
    """Returns the layout of ``count`` numbers."""
    return Layout(WORD, (-(-count // _digits(s)),))


def pack_levels(levels: Array, s: int) -> Array:
    """Packs ``levels``, whole numbers from −s to s."""
    base, width = 2 * s + 1, _digits(s)
    filled = np.pad(levels.astype(np.int64) % base, (0, -len(levels) % width)).astype(WORD).reshape(-1, width)
    words = np.zeros(len(filled), WORD)
    for digit in reversed(range(width)):
        words = words * WORD.type(base) + filled[:, digit]
    return words


def unpack_levels(words: Array, s: int, count: int) -> Array:
    """Returns the ``count`` numbers, int8, from an array of the right layout.

    Raises ``contribution.malformed`` for an array that ``pack_levels`` would not have made.
    """
    base, width = 2 * s + 1, _digits(s)
    digits = np.empty((len(words), width), np.int16)
    for digit in range(width):
        words, digits[:, digit] = np.divmod(words, WORD.type(base))
    levels = digits.reshape(-1)
    if words.any():
        raise malformed("levels", int(words.max()), f"a word holds more than {width} digits of base {base}")
    if levels[count:].any():
        raise malformed("levels", None, f"numbers after the first {count} are not zero")
    return np.where(levels > s, levels - base, levels)[:count].astype(np.int8)


def _digits(s: int) -> int:
    """Returns p: the largest number of digits of base 2s + 1 that always fit into a word."""
    width, most = 0, 1
    while (most := most * (2 * s + 1)) <= 1 << 64:
        width += 1
    return width
