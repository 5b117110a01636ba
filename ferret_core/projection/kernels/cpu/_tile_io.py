"""Tiles of weights of any float type as fp32: widened when read, rounded stochastically when written.

numba has no half precision: bf16 is passed as int16 and fp16 as uint16, which also distinguishes them when compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import types
from numba.extending import overload
from numpy import float32, int32, uint16, uint32
from numpy.typing import NDArray
from torch import Tensor

from ferret_core.projection.kernels.base import ReconstructionTerm
from ferret_core.projection.kernels.cpu._jit import compiled
from ferret_core.projection.kernels.cpu._philox import keys, philox, stream
from ferret_core.projection.philox import TILE, Tag

STORED = {torch.float32: torch.float32, torch.bfloat16: torch.int16, torch.float16: torch.uint16}
MAGNITUDE, INFINITY = uint32(0x7FFFFFFF), uint32(0x7F800000)
NAN, FP16_NAN = uint32(0x7FC0), uint32(0x7E00)
FP16_INFINITY = uint32(0x7C00)
FP16_REBIAS = uint32(112 << 10)
FP16_TOP = uint32(FP16_REBIAS + FP16_INFINITY)
FP16_SUBNORMAL, FP16_STEPS = float32(2.0**-14), float32(2.0**37)


def rounding_of(seed: int, block_id: int) -> tuple[Any, np.uint32]:
    """Returns key and third counter word of a block's stochastic rounding."""
    return keys([seed])[0], stream(block_id, Tag.STOCHASTIC_ROUNDING)


def stored(weights: Tensor) -> NDArray[Any]:
    """Returns the tensor's memory as a numpy array: float32, or the bits of bf16 (int16) or fp16 (uint16)."""
    return weights.view(STORED[weights.dtype]).numpy()


def widen(value: Any) -> Any:
    """A stored value as fp32."""
    raise NotImplementedError("for compiled code")


@overload(widen, jit_options={"error_model": "numpy"}, strict=False)
def _widen(value: Any) -> Callable[..., Any]:
    if value == types.float32:
        return _from_float32
    return _from_bfloat16 if value == types.int16 else _from_float16


def _from_float32(value: Any) -> Any:
    return value


def _from_bfloat16(value: Any) -> Any:
    return uint32(uint32(uint16(value)) << uint32(16)).view(float32)


def _from_float16(value: Any) -> Any:
    bits = uint32(value)
    sign = uint32((bits & uint32(0x8000)) << uint32(16))
    magnitude = uint32(bits & uint32(0x7FFF))
    if magnitude >= FP16_INFINITY:
        # Infinity and NaN keep their payload under the larger exponent.
        return uint32(sign | INFINITY | uint32((magnitude & uint32(0x3FF)) << uint32(13))).view(float32)
    scaled = float32(uint32(magnitude << uint32(13)).view(float32) * float32(2.0**112))
    return uint32(float32(scaled).view(uint32) | sign).view(float32)


@compiled
def inside(origin: Any, length: Any) -> Any:
    """Returns (first, last) of a tile's elements in a vector, if the tile begins at the vector's index ``origin``."""
    return max(-origin, 0), min(length - origin, TILE)


def opened(weights: Any, origin: Any, buffer: Any) -> Any:
    """Returns the tile of ``weights`` at ``origin`` as fp32, to be changed and then passed to ``store``.

    A whole tile of fp32 is used in place; any other is copied into ``buffer`` (4096,), and the rest of the buffer is
    undefined.
    """
    raise NotImplementedError("for compiled code")


@overload(opened, jit_options={"error_model": "numpy"}, strict=False)
def _opened(weights: Any, origin: Any, buffer: Any) -> Callable[..., Any]:
    return _opened_float32 if weights.dtype == types.float32 else _opened_half


def _opened_float32(weights: Any, origin: Any, buffer: Any) -> Any:
    if origin >= 0 and origin + TILE <= len(weights):
        return weights[origin : origin + TILE]
    _load(buffer, weights, origin)
    return buffer


def _opened_half(weights: Any, origin: Any, buffer: Any) -> Any:
    _load(buffer, weights, origin)
    return buffer


@compiled
def _load(buffer: Any, weights: Any, origin: Any) -> None:
    first, last = inside(origin, len(weights))
    source, target = weights[origin + first : origin + last], buffer[first:last]
    for i in range(len(target)):
        target[i] = widen(source[i])


@compiled
def load_difference(delta: Any, before: Any, after: Any, origin: Any) -> None:
    """Computes delta (4096,) ← before − after over the tile at ``origin``, zero outside of them."""
    first, last = inside(origin, len(after))
    b, a, target = before[origin + first : origin + last], after[origin + first : origin + last], delta[first:last]
    delta[:first] = 0
    delta[last:] = 0
    for i in range(len(target)):
        target[i] = widen(b[i]) - widen(a[i])


@compiled
def store(weights: Any, origin: Any, values: Any, chances: Any, tile: Any, key: Any, stream: Any) -> None:
    """Writes an ``opened`` tile back; rounds it stochastically if the weights are narrower."""
    first, last = inside(origin, len(weights))
    _store(weights[origin + first : origin + last], values[first:last], chances, first, tile, key, stream)


def _store(weights: Any, values: Any, chances: Any, skip: Any, tile: Any, key: Any, stream: Any) -> None:
    raise NotImplementedError("for compiled code")


@overload(_store, jit_options={"error_model": "numpy"}, strict=False)
def _store_as(
    weights: Any, values: Any, chances: Any, skip: Any, tile: Any, key: Any, stream: Any
) -> Callable[..., Any]:
    if weights.dtype == types.float32:
        return _store_float32
    return _store_bfloat16 if weights.dtype == types.int16 else _store_float16


def _store_float32(weights: Any, values: Any, chances: Any, skip: Any, tile: Any, key: Any, stream: Any) -> None:
    if len(weights) == TILE:
        return
    for i in range(len(weights)):
        weights[i] = values[i]


def _store_bfloat16(weights: Any, values: Any, chances: Any, skip: Any, tile: Any, key: Any, stream: Any) -> None:
    _draw_chances(chances, tile, stream, key)
    there = chances[skip:]
    for i in range(len(weights)):
        bits = float32(values[i]).view(uint32)
        magnitude = uint32(bits & MAGNITUDE)
        rounded = uint32(bits + (there[i] if magnitude < INFINITY else uint32(0)))
        weights[i] = uint16(NAN if magnitude > INFINITY else rounded >> uint32(16))


def _store_float16(weights: Any, values: Any, chances: Any, skip: Any, tile: Any, key: Any, stream: Any) -> None:
    _draw_chances(chances, tile, stream, key)
    there = chances[skip:]
    for i in range(len(weights)):
        bits = float32(values[i]).view(uint32)
        magnitude = uint32(bits & MAGNITUDE)
        chance = there[i] >> uint32(3)
        small = min(uint32(magnitude).view(float32), FP16_SUBNORMAL)
        subnormal = uint32(uint32(int32(small * FP16_STEPS)) + chance) >> uint32(13)
        normal = uint32(min(uint32(uint32(magnitude + chance) >> uint32(13)), FP16_TOP) - FP16_REBIAS)
        rounded = subnormal if small < FP16_SUBNORMAL else normal
        sign = uint32(bits >> uint32(16)) & uint32(0x8000)
        weights[i] = uint16(FP16_NAN if magnitude > INFINITY else rounded | sign)


@compiled
def _draw_chances(chances: Any, tile: Any, stream: Any, key: Any) -> None:
    """Draws 16 random bits for each of a tile's elements: uint32 (4096,)."""
    groups = len(chances) // 8
    for group in range(groups):
        words = philox(uint32(tile * groups + group), uint32(0), stream, key[0], key[1])
        for w in range(4):
            chances[8 * group + 2 * w] = words[w] & uint32(0xFFFF)
            chances[8 * group + 2 * w + 1] = words[w] >> uint32(16)


class Terms(NamedTuple):
    """All terms' coefficients concatenated, fp32, with their offsets, counts and keys."""

    coefficients: NDArray[np.float32]
    offsets: NDArray[np.int64]
    counts: NDArray[np.int64]
    keys: NDArray[np.uint32]


def packed(terms: Sequence[ReconstructionTerm]) -> Terms | None:
    """Packs the terms with coefficients; returns None without any. A single term is not copied."""
    sent = [term for term in terms if len(term.coefficients)]
    if not sent:
        return None
    counts = np.array([len(term.coefficients) for term in sent], np.int64)
    joined = torch.cat([term.coefficients for term in sent]) if len(sent) > 1 else sent[0].coefficients
    return Terms(joined.numpy(), np.cumsum(counts) - counts, counts, keys([term.seed for term in sent]))
