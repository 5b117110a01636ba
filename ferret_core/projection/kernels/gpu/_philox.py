"""Words of the projection format, drawn in registers by Triton's own Philox-4x32-10."""

from __future__ import annotations

import triton.language as tl

from ferret_core.projection import FORMAT_VERSION
from ferret_core.projection.kernels.gpu._jit import jit
from ferret_core.projection.kernels.gpu._value import Value

VERSION = tl.constexpr(FORMAT_VERSION)


@jit
def draw(seed: Value, groups: Value, row: Value, block: Value, tag: tl.constexpr) -> Value:
    """Returns the words of ``groups`` (n,) under the 64-bit ``seed``: uint32 (n, 4)."""
    w0, w1, w2, w3 = _words(seed, groups, row, block, tag)
    return tl.reshape(tl.join(tl.join(w0, w2), tl.join(w1, w3)), [groups.shape[0], 4])


@jit
def draw_below(seed: Value, index: Value, n: Value, block: Value, tag: tl.constexpr) -> Value:
    """Returns an integer below ``n`` ≤ 2⁴⁶ from word ``index`` mod 4 of group ⌊``index``/4⌋: int64, of any shape.

    Computed in two steps, because word·n may be longer than 63 bits.
    """
    w0, w1, w2, w3 = _words(seed, index // 4, 0, block, tag)
    number = index % 4
    word = tl.where(number < 2, tl.where(number == 0, w0, w1), tl.where(number == 2, w2, w3))
    word, n = word.to(tl.int64), tl.cast(n, tl.int64)
    return word * (n >> 16) + (word * (n & 0xFFFF) >> 16) >> 16


@jit
def _words(seed: Value, group: Value, row: Value, block: Value, tag: tl.constexpr) -> Value:
    return tl.philox(seed, group.to(tl.uint32), tl.cast(row, tl.uint32), block | tag << 24, VERSION)
