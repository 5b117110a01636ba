"""Encodes the coordinates of projected updates as :mod:`ferret_core.projection.coordinates` lays them out."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
import torch
from torch import Tensor

from ferret_core.projection.coordinates import DTYPES, Kind, decode, kinds_of
from ferret_core.projection.philox import Tag, draw
from ferret_core.projection.reduce import lanes, pairwise
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Array, Arrays

LIMIT = 2.0**127


def quantize(gammas: Sequence[Tensor], kind: Kind, seed: int = 0, whole: Collection[int] = ()) -> dict[str, Array]:
    """The arrays that carry γ_l, fp32 (K_l,), of every block; the same bytes for any number of threads.

    ``seed`` is the dither's, ``whole`` the positions of blocks sent whole. Raises ``contribution.non_finite`` for a
    coordinate that is not finite or as large as 2¹²⁷.
    """
    blocks = [_finite(position, gamma.cpu()) for position, gamma in enumerate(gammas)]
    kinds = kinds_of(kind, len(blocks), whole)
    if kind == "float32":
        return {"coordinates": torch.cat(blocks).numpy()}
    scales, exponent = _stored(
        [_scale(gamma, precision) for gamma, precision in zip(blocks, kinds, strict=True)], kinds
    )
    encoded = [
        _encode(gamma, math.ldexp(float(h), exponent), precision, seed, position)
        for position, (gamma, h, precision) in enumerate(zip(blocks, scales, kinds, strict=True))
    ]
    arrays = {"coordinates": _joined(encoded, kinds, kind)}
    if kind == "sign":
        arrays["coordinates"] = np.packbits(arrays["coordinates"])
        if whole:
            arrays["whole"] = _joined(encoded, kinds, "int8")
    return {**arrays, "scales": scales, "exponent": np.array([exponent], dtype=np.int32)}


def dequantize(arrays: Arrays, kind: Kind, K: Sequence[int], whole: Collection[int] = ()) -> list[Tensor]:
    """γ_l of every block as tensors; raises as :func:`ferret_core.projection.coordinates.decode`."""
    return [torch.from_numpy(gamma) for gamma in decode(arrays, kind, K, whole)]


def _joined(encoded: Sequence[Tensor], kinds: Sequence[Kind], kind: Kind) -> Array:
    chosen = [values for values, precision in zip(encoded, kinds, strict=True) if precision == kind]
    return torch.cat(chosen).numpy() if chosen else np.zeros(0, dtype=DTYPES[kind])


def _finite(position: int, gamma: Tensor) -> Tensor:
    # Written so that NaN fails too. From 2¹²⁷ on, rounding up could leave the range of fp32.
    if not bool((gamma.abs() < LIMIT).all()):
        raise FerretError.of_field(
            "contribution.non_finite", f"coordinates of block {position}", None, "hold NaN, infinity or a huge value"
        )
    return gamma


def _scale(gamma: Tensor, kind: Kind) -> float:
    """The block's scale before it is stored; 0 if all coordinates are."""
    largest = float(gamma.abs().max()) if len(gamma) else 0.0
    if largest == 0:
        return 0.0
    if kind == "float16":
        return math.ldexp(1.0, math.frexp(largest)[1] - 15)
    return largest / 127 if kind == "int8" else _preserving_scale(gamma.double().abs())


def _preserving_scale(magnitudes: Tensor) -> float:
    """‖γ‖² / ‖γ‖₁."""
    squares, total = pairwise(lanes(magnitudes * magnitudes)), pairwise(lanes(magnitudes))
    return float(squares / total)


def _stored(scales: Sequence[float], kinds: Sequence[Kind]) -> tuple[Array, int]:
    """The scales in half precision, fp16 (blocks,), and the exponent of their common factor."""
    largest = max(scales, default=0.0)
    exponent = math.frexp(largest)[1] - 15 if largest else 0
    relative = np.array([math.ldexp(scale, -exponent) for scale in scales])
    nearest = relative.astype(np.float16)
    low = (nearest < relative) & (np.array(kinds) != "sign")
    return np.where(low, np.nextafter(nearest, np.float16(np.inf)), nearest), exponent


def _encode(gamma: Tensor, scale: float, kind: Kind, seed: int, position: int) -> Tensor:
    if kind == "sign":
        return gamma < 0
    ratio = gamma.double() / (scale or 1.0)
    return ratio.half() if kind == "float16" else (ratio + dither(seed, position, len(gamma))).floor().to(torch.int8)


def dither(seed: int, position: int, count: int) -> Tensor:
    """Uniform on [0, 1), fp64 (count,)."""
    words = draw(seed, torch.arange(-(-count // 4)), 1, position, Tag.STOCHASTIC_ROUNDING)
    return words.flatten()[:count] * 2.0**-32
