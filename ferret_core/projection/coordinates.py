"""Coordinates on the wire: four precisions, three of them with one fp16 scale per block.

float32  the coordinates as they are; no scales.
float16  γ/scale to the nearest number in half precision, off by 2⁻¹¹ of it at most; the scale is the power of two
         that brings the largest |γ| of the block into [2¹⁴, 2¹⁵).
int8     γ/scale rounded down or up at random so that it keeps its mean, by a dither of the participant's own seed
         (tag 6, row 1, a word for each coordinate); the scale is max|γ| / 127, so the error stays below one scale.
sign     one bit per coordinate, 1 for γ < 0, all blocks in one row, packed from the top bit down and filled up with
         zeros; scale = ‖γ‖² / ‖γ‖₁, so that γ^ = ±scale satisfies ⟨γ^, γ⟩ = ‖γ‖². For symmetric coordinates, such as
         those of random bases, E γ^ is then γ (DRIVE, Vargaftik et al. 2021); for Gaussian ones ‖γ^‖² ≈ (π/2)‖γ‖².
         Blocks sent whole are no such coordinates: theirs travel as int8.

Scales are fixed first and coordinates encoded by what is sent. A scale is h·2ᵉ: h in half precision, e one exponent
for the whole contribution, which brings the largest scale into [2¹⁴, 2¹⁵). So none overflows, and blocks may differ
by 2³⁸ before one is coarser than its neighbours. h is rounded up (int8, float16: whatever is tiny keeps its mean),
for sign to the nearest, where a scale below 2⁻³⁹ of the largest is 0.

Arrays: ``coordinates``, all blocks one after the other; ``whole``, those of whole blocks under sign; ``scales``, h,
fp16 (blocks,); ``exponent``, e, int32 (1,).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Array, Arrays, malformed

Kind = Literal["float32", "float16", "int8", "sign"]
KINDS: tuple[Kind, ...] = get_args(Kind)
EXPONENTS = range(-177, 113)
DTYPES: dict[Kind, type[np.generic]] = {
    "float32": np.float32,
    "float16": np.float16,
    "int8": np.int8,
    "sign": np.uint8,
}


class Layout(NamedTuple):
    """What an array must be."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def decode(arrays: Arrays, kind: Kind, K: Sequence[int], whole: Collection[int] = ()) -> list[Array]:
    """γ_l, fp32 (K_l,), of every block.

    Raises ``contribution.malformed`` for arrays that ``quantize`` would not have made, ``contribution.non_finite`` for
    coordinates beyond fp32.
    """
    _check(arrays, kind, K, whole)
    kinds = kinds_of(kind, len(K), whole)
    parts = {used: iter(_parts(arrays, used, kind, K, kinds)) for used in set(kinds)}
    values = [next(parts[used]).astype(np.float32) for used in kinds]
    if kind == "float32":
        return values
    exponent = int(arrays["exponent"][0])
    scales = [math.ldexp(float(h), exponent) for h in arrays["scales"]]
    with np.errstate(over="ignore"):
        gammas = [
            (numbers.astype(np.float64) * scale).astype(np.float32)
            for numbers, scale in zip(values, scales, strict=True)
        ]
    for position, gamma in enumerate(gammas):
        if not bool(np.isfinite(gamma).all()):
            scale = scales[position]
            raise FerretError.of_field(
                "contribution.non_finite", f"scales[{position}]", scale, "takes the block's coordinates beyond fp32"
            )
    return gammas


def layouts(kind: Kind, count: int, whole: int, blocks: int) -> dict[str, Layout]:
    """The arrays of a contribution with ``blocks`` blocks, ``count`` coordinates, of them ``whole`` in whole blocks."""
    apart = whole if kind == "sign" else 0
    length = -(-(count - apart) // 8) if kind == "sign" else count
    expected = {"coordinates": Layout(np.dtype(DTYPES[kind]), (length,))}
    if apart:
        expected["whole"] = Layout(np.dtype(np.int8), (apart,))
    if kind != "float32":
        expected["scales"] = Layout(np.dtype(np.float16), (blocks,))
        expected["exponent"] = Layout(np.dtype(np.int32), (1,))
    return expected


def kinds_of(kind: Kind, blocks: int, whole: Collection[int]) -> list[Kind]:
    """How each block's coordinates travel."""
    apart = set(whole) if kind == "sign" else set[int]()
    return ["int8" if position in apart else kind for position in range(blocks)]


def _check(arrays: Arrays, kind: Kind, K: Sequence[int], whole: Collection[int]) -> None:
    expected = layouts(kind, sum(K), sum(K[position] for position in whole), len(K))
    if set(arrays) != set(expected):
        raise malformed("arrays", sorted(arrays), f"{kind} coordinates come as {' and '.join(sorted(expected))}")
    for name, (dtype, shape) in expected.items():
        if arrays[name].dtype != dtype:
            raise malformed(f"{name}.dtype", str(arrays[name].dtype), f"expected {dtype}")
        if arrays[name].shape != shape:
            raise malformed(f"{name}.shape", list(arrays[name].shape), f"expected {list(shape)}")
        if dtype == np.int8 and bool((arrays[name] == -128).any()):
            raise malformed(name, -128, "is outside −127 … 127")
    if kind == "float32":
        return
    if int(arrays["exponent"][0]) not in EXPONENTS:
        raise malformed("exponent", int(arrays["exponent"][0]), f"is outside {EXPONENTS[0]} … {EXPONENTS[-1]}")
    for position in np.flatnonzero(np.signbit(arrays["scales"]))[:1]:
        raise malformed(f"scales[{position}]", float(arrays["scales"][position]), "is negative")
    used = sum(K) - sum(K[position] for position in whole)
    if kind == "sign" and np.unpackbits(arrays["coordinates"][used // 8 :])[used % 8 :].any():
        raise malformed("coordinates", None, "bits after the last coordinate are not zero")


def _parts(arrays: Arrays, used: Kind, kind: Kind, K: Sequence[int], kinds: Sequence[Kind]) -> list[Array]:
    """The numbers sent for the blocks of kind ``used``, in their order."""
    lengths = [count for count, other in zip(K, kinds, strict=True) if other == used]
    numbers = arrays["coordinates" if used == kind else "whole"]
    if used == "sign":
        numbers = 1 - 2 * np.unpackbits(numbers, count=sum(lengths)).astype(np.float32)
    return np.split(numbers, np.cumsum(lengths)[:-1])
