"""Tiles of weights of any float type: read as fp32, written with the stochastic rounding of the format's tag 6.

A program processes one tile of 4096 elements of a block, in the shape of its signs; the vector need not begin or end
with a tile.
"""

from __future__ import annotations

import triton.language as tl

from ferret_core.projection import stochastic_rounding
from ferret_core.projection.kernels.gpu._jit import Value, jit
from ferret_core.projection.kernels.gpu._philox import LANES, ROWS, TILE, draw
from ferret_core.projection.philox import Tag

STOCHASTIC_ROUNDING = tl.constexpr(int(Tag.STOCHASTIC_ROUNDING))
FP16_SUBNORMAL = tl.constexpr(stochastic_rounding.FP16_SUBNORMAL)
FP16_INFINITY = tl.constexpr(stochastic_rounding.FP16_INFINITY)
FP16_SCALE = tl.constexpr(2.0**37)  # exact: 2⁻¹⁴ becomes 2²³


@jit
def place(number: Value, start: Value, count: Value) -> Value:
    """Returns (tile, at, inside) of tile ``number`` in a vector of ``count`` elements, ``start`` … of the block.

    These are its number in the block, the places of its elements in the vector, int64 (128, 32), and a mask of the
    existing ones.
    """
    return _place(number, start, count, tl.arange(0, ROWS)[:, None] * LANES + tl.arange(0, LANES)[None, :])


@jit
def place_cube(number: Value, start: Value, count: Value) -> Value:
    """Returns the same, as (4, 32, 32)."""
    words, bits = tl.arange(0, ROWS // 32)[:, None, None], tl.arange(0, 32)[None, :, None]
    return _place(number, start, count, (words * 32 + bits) * LANES + tl.arange(0, LANES)[None, None, :])


@jit
def _place(number: Value, start: Value, count: Value, elements: Value) -> Value:
    tile = tl.cast(start, tl.int64) // TILE + number
    at = tile * TILE - start + elements
    return tile, at, (at >= 0) & (at < count)


@jit
def load(vector: Value, at: Value, inside: Value) -> Value:
    """Loads fp32, in the shape of ``at``; zero outside."""
    return tl.load(vector + at, mask=inside, other=0.0).to(tl.float32)


@jit
def store(vector: Value, at: Value, inside: Value, values: Value, tile: Value, rounding: Value, block: Value) -> None:
    """Writes fp32 ``values``; half types are rounded by the seed ``rounding``."""
    kind: tl.constexpr = vector.dtype.element_ty
    if kind == tl.float32:
        tl.store(vector + at, values, mask=inside)
    else:
        bits = values.to(tl.int32, bitcast=True)
        magnitude, chances = bits & 0x7FFFFFFF, tl.reshape(_chances(rounding, tile, block), values.shape)
        if kind == tl.bfloat16:
            rounded = tl.where(magnitude < 0x7F800000, magnitude + chances, magnitude) >> 16
            nan = 0x7FC0
        else:
            rounded = _to_float16(magnitude, chances >> 3)
            nan = 0x7E00
        signed = tl.where(magnitude > 0x7F800000, nan, rounded | (bits >> 16 & 0x8000))
        tl.store(vector + at, signed.to(tl.int16).to(kind, bitcast=True), mask=inside)


@jit
def _to_float16(magnitude: Value, chances: Value) -> Value:
    """Converts a magnitude from fp32 to fp16: below 2⁻¹⁴ its last place is 2⁻²⁴ for all."""
    value = magnitude.to(tl.float32, bitcast=True)
    normal = ((magnitude + chances) >> 13) - (112 << 10)
    small = value < FP16_SUBNORMAL
    scaled = tl.where(small, value, FP16_SUBNORMAL) * FP16_SCALE  # NaN, which tl.minimum may keep, has no integer
    subnormal = (scaled.to(tl.int32) + chances) >> 13
    return tl.where(small, subnormal, tl.minimum(normal, FP16_INFINITY))


@jit
def _chances(seed: Value, tile: Value, block: Value) -> Value:
    """Draws 16 random bits for each element: int32 (512, 4, 2)."""
    words = draw(seed, tile * (TILE // 8) + tl.arange(0, TILE // 8), 0, block, STOCHASTIC_ROUNDING)
    return tl.join(words & 0xFFFF, words >> 16).to(tl.int32)
