"""Words of the projection format, drawn in registers by Triton's own Philox-4x32-10; and the signs of a tile, one bit
per element: 32 calls of the generator serve 4096 elements."""

from __future__ import annotations

import triton.language as tl

from ferret_core.projection import FORMAT_VERSION, philox
from ferret_core.projection.kernels.gpu._jit import Value, jit
from ferret_core.projection.philox import Tag

VERSION = tl.constexpr(FORMAT_VERSION)
MINUS = tl.constexpr(philox.MINUS)
SIGNS = tl.constexpr(int(Tag.SIGNS))
LANES = tl.constexpr(philox.LANES)
TILE = tl.constexpr(philox.TILE)
ROWS = tl.constexpr(philox.TILE // philox.LANES)
SHAPE = tl.constexpr((ROWS.value, LANES.value))
"""Shape of a tile: a row has one bit of each lane, so that threads need few words of others to unpack their signs."""
CUBE = tl.constexpr((ROWS.value // 32, 32, LANES.value))
"""The same with the bits of each word apart: faster, but must not be summed: Triton 3.6 takes the wrong lanes."""


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


@jit
def sign_bits(seed: Value, tile: Value, row: Value, block: Value, tag: tl.constexpr) -> Value:
    """Returns sign bits of the elements of ``tile``: int32 (128, 32), with the top bit set for minus."""
    return tl.reshape(sign_cube(seed, tile, row, block, tag), SHAPE)


@jit
def sign_cube(seed: Value, tile: Value, row: Value, block: Value, tag: tl.constexpr) -> Value:
    """Returns the same as int32 (4, 32, 32)."""
    words = draw(seed, tile * LANES + tl.arange(0, LANES), row, block, tag)
    packed = tl.permute(words, 1, 0).to(tl.int32, bitcast=True)
    return (packed[:, None, :] << tl.arange(0, 32)[None, :, None]) & MINUS


@jit
def flip(values: Value, bits: Value) -> Value:
    """Applies the signs in ``bits`` to fp32 ``values``."""
    return (values.to(tl.int32, bitcast=True) ^ bits).to(tl.float32, bitcast=True)
