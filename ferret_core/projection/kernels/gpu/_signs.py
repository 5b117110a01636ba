"""Random signs of a tile, one bit per element: 32 calls of the generator serve 4096 elements."""

from __future__ import annotations

import triton.language as tl

from ferret_core.projection import signs
from ferret_core.projection.kernels.gpu._jit import jit
from ferret_core.projection.kernels.gpu._philox import draw
from ferret_core.projection.kernels.gpu._value import Value
from ferret_core.projection.philox import Tag

MINUS = tl.constexpr(signs.MINUS)
SIGNS = tl.constexpr(int(Tag.SIGNS))
LANES = tl.constexpr(signs.LANES)
TILE = tl.constexpr(signs.TILE)
ROWS = tl.constexpr(signs.TILE // signs.LANES)
SHAPE = tl.constexpr((ROWS.value, LANES.value))
"""Shape of a tile: a row has one bit of each lane, so that threads need few words of others to unpack their signs."""
CUBE = tl.constexpr((ROWS.value // 32, 32, LANES.value))
"""The same with the bits of each word apart: faster, but must not be summed: Triton 3.6 takes the wrong lanes."""


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
