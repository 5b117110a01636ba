"""Encoding of coordinates: all in one of four precisions, or only the largest, with one scale per block except in fp32.

float32  the coordinates unchanged; no scales.
float16  γ/scale to the nearest number in half precision, off by 2⁻¹¹ of it at most; the scale is the power of two
         that brings the largest |γ| of the block into [2¹⁴, 2¹⁵).
int8     γ/scale rounded down or up randomly so that it keeps its mean, by a dither from the participant's own seed
         (tag 6, row 1, a word for each coordinate); the scale is max|γ| / 127, so the error stays below one scale.
sign     one bit per coordinate, 1 for γ < 0, all blocks in one row, packed from the top bit down and filled up with
         zeros; scale = ‖γ‖² / ‖γ‖₁, so that γ^ = ±scale satisfies ⟨γ^, γ⟩ = ‖γ‖². For symmetric coordinates, e.g. on
         random bases, E γ^ is then γ (DRIVE, Vargaftik et al. 2021); for Gaussian ones ‖γ^‖² ≈ (π/2)‖γ‖².
         Blocks sent whole do not have such coordinates; they use int8.
sparse_sign  the places and signs of the largest coordinates; all others are 0
         (:mod:`ferret_core.projection.sparse_sign`), by the code of :mod:`ferret_core.projection.rice_code` over all
         blocks in one row; scale = ‖γ‖² / ‖γ_sent‖₁. Blocks sent whole are encoded like under sign.

Scales are fixed first and coordinates encoded by what is sent. A scale is h·2ᵉ: h in half precision, e one exponent for
the whole contribution, which brings the largest scale into [2¹⁴, 2¹⁵). So none overflows, and scales may differ by a
factor of 2³⁸ before one loses precision. h is rounded up (int8, float16: tiny values keep their mean), or for sign to
the nearest, where a scale below 2⁻³⁹ of the largest is 0.

Arrays: ``coordinates``, all blocks one after the other; ``whole``, those of whole blocks under the two kinds of signs;
``sent``, how many are, int32 (1,), under sparse_sign; ``scales``, h, fp16 (blocks,); ``exponent``, e, int32 (1,).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from ferret_core.projection import rice_code
from ferret_core.projection.sparse_sign import SentCounts, Sparse
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Array, Arrays, malformed

Precision = Literal["float32", "float16", "int8", "sign"]
Kind = Literal[Precision, "sparse_sign"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
KINDS: tuple[Kind, ...] = (*PRECISIONS, "sparse_sign")
SIGNS: tuple[Kind, ...] = ("sign", "sparse_sign")
"""Kinds that carry only signs, and therefore cannot encode a block sent whole."""
EXPONENTS = range(-177, 113)
DTYPES: dict[Kind, type[np.generic]] = {
    "float32": np.float32,
    "float16": np.float16,
    "int8": np.int8,
    "sign": np.uint8,
    "sparse_sign": np.uint8,
}


class Layout(NamedTuple):
    """Dtype and shape of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


def decode(arrays: Arrays, kind: Kind, K: Sequence[int], whole: Collection[int] = ()) -> Sequence[Array]:
    """Decodes γ_l, fp32 (K_l,), of every block. Sparse blocks are expanded on access; until then only sent values take
    memory.

    Raises ``contribution.malformed`` for arrays that ``quantize`` would not have made, ``contribution.non_finite`` for
    coordinates beyond fp32.
    """
    _check(arrays, kind, K, whole)
    if kind == "sparse_sign":
        return _sparse(arrays, K, whole)
    kinds = kinds_of(kind, len(K), whole)
    parts = {used: iter(_parts(arrays, used, kind, K, kinds)) for used in set(kinds)}
    values = [next(parts[used]).astype(np.float32) for used in kinds]
    if kind == "float32":
        return values
    return [
        _scaled(numbers, scale, position)
        for position, (numbers, scale) in enumerate(zip(values, scales_in(arrays), strict=True))
    ]


def layouts(kind: Kind, count: int, whole: int, blocks: int, room: int = 0) -> dict[str, Layout]:
    """Returns the layouts for ``blocks`` blocks and ``count`` coordinates, ``whole`` of them in whole blocks.

    Sparse coordinates take as many bytes as they need, up to ``room``.
    """
    apart = whole if kind in SIGNS else 0
    length = {"sign": -(-(count - apart) // 8), "sparse_sign": room}.get(kind, count)
    expected = {"coordinates": Layout(np.dtype(DTYPES[kind]), (length,))}
    if apart:
        expected["whole"] = Layout(np.dtype(np.int8), (apart,))
    if kind == "sparse_sign":
        expected["sent"] = Layout(np.dtype(np.int32), (1,))
    if kind != "float32":
        expected["scales"] = Layout(np.dtype(np.float16), (blocks,))
        expected["exponent"] = Layout(np.dtype(np.int32), (1,))
    return expected


def kinds_of(kind: Kind, blocks: int, whole: Collection[int]) -> list[Kind]:
    """Returns the encoding of each block's coordinates."""
    apart = set(whole) if kind in SIGNS else set[int]()
    return ["int8" if position in apart else kind for position in range(blocks)]


def _check(arrays: Arrays, kind: Kind, K: Sequence[int], whole: Collection[int]) -> None:
    room = arrays["coordinates"].size if "coordinates" in arrays else 0
    expected = layouts(kind, sum(K), sum(K[position] for position in whole), len(K), room)
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


def _sparse(arrays: Arrays, K: Sequence[int], whole: Collection[int]) -> Sparse:
    apart = iter(_parts(arrays, "int8", "sparse_sign", K, kinds_of("sparse_sign", len(K), whole)) if whole else ())
    counts = [0 if position in whole else count for position, count in enumerate(K)]
    places, minus = rice_code.unpack(arrays["coordinates"], int(arrays["sent"][0]), sum(counts))
    starts = np.cumsum([0, *counts])
    cuts = np.searchsorted(places, starts)
    blocks = list[SentCounts]()
    for position, (count, scale) in enumerate(zip(K, scales_in(arrays), strict=True)):
        if position in whole:
            found, numbers = np.arange(count), next(apart)
        else:
            here = slice(cuts[position], cuts[position + 1])
            found, numbers = places[here] - starts[position], 1 - 2 * minus[here].astype(np.float32)
        blocks.append(SentCounts(count, found, _scaled(numbers, scale, position)))
    return Sparse(blocks)


def scales_in(arrays: Arrays) -> list[float]:
    """Returns the scale of every block."""
    exponent = int(arrays["exponent"][0])
    return [math.ldexp(float(h), exponent) for h in arrays["scales"]]


def _scaled(numbers: Array, scale: float, position: int) -> Array:
    with np.errstate(over="ignore"):
        gamma = (numbers.astype(np.float64) * scale).astype(np.float32)
    if not bool(np.isfinite(gamma).all()):
        raise FerretError.of_field(
            "contribution.non_finite", f"scales[{position}]", scale, "takes the block's coordinates beyond fp32"
        )
    return gamma


def _parts(arrays: Arrays, used: Kind, kind: Kind, K: Sequence[int], kinds: Sequence[Kind]) -> list[Array]:
    """Returns the numbers sent for the blocks of kind ``used``, in their order."""
    lengths = [count for count, other in zip(K, kinds, strict=True) if other == used]
    numbers = arrays["coordinates" if used == kind else "whole"]
    if used == "sign":
        numbers = 1 - 2 * np.unpackbits(numbers, count=sum(lengths)).astype(np.float32)
    return np.split(numbers, np.cumsum(lengths)[:-1])
