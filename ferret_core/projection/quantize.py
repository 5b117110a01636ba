"""Coordinates on the wire: four precisions, each with one scale per block.

float32  the coordinates as they are; no scales.
float16  γ/scale in half precision, scale the power of two that brings the largest |γ| of the block into [2¹⁴, 2¹⁵):
         nothing overflows, and only what is below 2⁻³⁹ of the largest becomes zero.
int8     γ/scale rounded to the nearest integer, ties to even; scale = max|γ| / 127.
sign     one bit per coordinate, 1 for γ < 0, all blocks in one row, packed from the top bit down and filled up with
         zeros; scale = ‖γ‖² / ‖γ‖₁, so that γ^ = ±scale satisfies ⟨γ^, γ⟩ = ‖γ‖². For symmetric coordinates, such as
         those of random bases, E γ^ is then γ (DRIVE, Vargaftik et al. 2021); for Gaussian ones ‖γ^‖² ≈ (π/2)‖γ‖².

Arrays: ``coordinates``, all blocks one after the other, and ``scales``, fp32 (blocks,).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from ferret_core.projection.reduce import lanes, pairwise
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Array, Arrays, malformed

Kind = Literal["float32", "float16", "int8", "sign"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LIMIT = 2.0**127


def quantize(gammas: Sequence[Tensor], kind: Kind) -> dict[str, Array]:
    """The arrays that carry γ_l, fp32 (K_l,), of every block; the same bytes for any number of threads.

    Raises ``contribution.non_finite`` for a coordinate that is not finite or as large as 2¹²⁷.
    """
    blocks = [_finite(position, gamma.cpu()) for position, gamma in enumerate(gammas)]
    if kind == "float32":
        return {"coordinates": torch.cat(blocks).numpy()}
    scales = [_scale(block, kind) for block in blocks]
    coordinates = torch.cat([_encode(block, scale, kind) for block, scale in zip(blocks, scales, strict=True)]).numpy()
    if kind == "sign":
        coordinates = np.packbits(coordinates)
    return {"coordinates": coordinates, "scales": np.array(scales, dtype=np.float32)}


def dequantize(arrays: Arrays, kind: Kind, K: Sequence[int]) -> list[Tensor]:
    """γ_l, fp32 (K_l,), of every block; raises as ``check``."""
    check(arrays, kind, K)
    coordinates = arrays["coordinates"]
    if kind == "sign":
        coordinates = 1 - 2 * np.unpackbits(coordinates, count=sum(K)).astype(np.float32)
    gammas = list(torch.tensor(coordinates, dtype=torch.float32).split(list(K)))
    if kind == "float32":
        return gammas
    return [gamma * float(scale) for gamma, scale in zip(gammas, arrays["scales"], strict=True)]


def check(arrays: Arrays, kind: Kind, K: Sequence[int]) -> None:
    """Raises ``contribution.malformed`` unless the names, dtypes and shapes are those of ``quantize``."""
    expected = _expected(kind, K)
    if set(arrays) != set(expected):
        raise malformed("arrays", sorted(arrays), f"{kind} coordinates come as {' and '.join(sorted(expected))}")
    for name, (dtype, shape) in expected.items():
        if arrays[name].dtype != dtype:
            raise malformed(f"{name}.dtype", str(arrays[name].dtype), f"expected {dtype}")
        if arrays[name].shape != shape:
            raise malformed(f"{name}.shape", list(arrays[name].shape), f"expected {list(shape)}")
    if kind == "sign" and np.unpackbits(arrays["coordinates"])[sum(K) :].any():
        raise malformed("coordinates", None, "bits after the last coordinate are not zero")


def _expected(kind: Kind, K: Sequence[int]) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    count = sum(K)
    if kind == "float32":
        return {"coordinates": (np.dtype(np.float32), (count,))}
    dtypes: dict[str, type[np.generic]] = {"float16": np.float16, "int8": np.int8, "sign": np.uint8}
    shape = (-(-count // 8),) if kind == "sign" else (count,)
    return {"coordinates": (np.dtype(dtypes[kind]), shape), "scales": (np.dtype(np.float32), (len(K),))}


def _finite(position: int, gamma: Tensor) -> Tensor:
    # Written so that NaN fails too. From 2¹²⁷ on, rounding up could leave the range of fp32.
    if not bool((gamma.abs() < LIMIT).all()):
        raise FerretError.of_field(
            "contribution.non_finite", f"coordinates of block {position}", None, "hold NaN, infinity or a huge value"
        )
    return gamma


def _scale(gamma: Tensor, kind: Kind) -> float:
    """The block's scale, a value of fp32; 0 for int8 and sign if all coordinates are."""
    largest = float(gamma.abs().max()) if len(gamma) else 0.0
    if kind == "float16":
        return 2.0 ** max(math.frexp(largest)[1] - 15, -126)
    if kind == "int8":
        return float(np.float32(largest / 127))
    return _preserving_scale(gamma.double().abs()) if largest else 0.0


def _preserving_scale(magnitudes: Tensor) -> float:
    """‖γ‖² / ‖γ‖₁, rounded to fp32 once."""
    squares, total = pairwise(lanes(magnitudes * magnitudes)), pairwise(lanes(magnitudes))
    return float((squares / total).float())


def _encode(gamma: Tensor, scale: float, kind: Kind) -> Tensor:
    if kind == "float16":
        return (gamma / scale).half()
    if kind == "int8":
        return (gamma.double() / (scale or 1.0)).round().clamp(-127, 127).to(torch.int8)
    return gamma < 0
