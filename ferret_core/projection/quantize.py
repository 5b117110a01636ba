"""Encoder of the coordinates of projected updates, in the format of
:mod:`ferret_core.projection.coordinate_encoding`."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import overload

import numpy as np
import torch
from torch import Tensor

from ferret_core.projection import rice_code, sparse_sign
from ferret_core.projection.coordinate_encoding import DTYPES, SIGNS, Kind, decode, kinds_of
from ferret_core.projection.deterministic_sum import lanes, pairwise
from ferret_core.projection.philox import Tag, draw
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import Array, Arrays

LIMIT = 2.0**127


def quantize(
    gammas: Sequence[Tensor], kind: Kind, seed: int = 0, whole: Collection[int] = (), room: int = 0
) -> dict[str, Array]:
    """Encodes γ_l, fp32 (K_l,), of every block; the same bytes for any number of threads.

    ``seed``: the dither's; ``whole``: the positions of blocks sent whole; ``room``: maximum bytes of sparse
    coordinates. Raises ``contribution.non_finite`` for a coordinate that is not finite or as large as 2¹²⁷, and the
    errors of :func:`ferret_core.projection.sparse_sign.chosen`.
    """
    blocks = [_finite(position, gamma.cpu()) for position, gamma in enumerate(gammas)]
    kinds = kinds_of(kind, len(blocks), whole)
    if kind == "float32":
        return {"coordinates": torch.cat(blocks).numpy()}
    places, sent = _chosen(blocks, whole, room) if kind == "sparse_sign" else (None, blocks)
    scales, exponent = _stored([*map(_scale, blocks, sent, kinds, range(len(blocks)))], kinds)
    encoded = [
        _encode(gamma, math.ldexp(float(h), exponent), precision, seed, position)
        for position, (gamma, h, precision) in enumerate(zip(sent, scales, kinds, strict=True))
    ]
    arrays = {"coordinates": _joined(encoded, kinds, kind)}
    if kind == "sign":
        arrays["coordinates"] = np.packbits(arrays["coordinates"])
    if places is not None:
        count = sum(len(gamma) for gamma, precision in zip(blocks, kinds, strict=True) if precision == kind)
        arrays["coordinates"] = rice_code.pack(places, arrays["coordinates"], count)
        arrays["sent"] = np.array([len(places)], dtype=np.int32)
    if whole and kind in SIGNS:
        arrays["whole"] = _joined(encoded, kinds, "int8")
    return {**arrays, "scales": scales, "exponent": np.array([exponent], dtype=np.int32)}


def dequantize(
    arrays: Arrays, kind: Kind, K: Sequence[int], whole: Collection[int] = (), factor: float = 1.0
) -> Sequence[Tensor]:
    """Decodes γ_l of every block, times ``factor``, in fp32.

    Raises, and takes memory, like :func:`ferret_core.projection.coordinate_encoding.decode`.
    """
    gammas = decode(arrays, kind, K, whole)
    return Times(factor, gammas) if isinstance(gammas, sparse_sign.Sparse) else [*Times(factor, gammas)]


class Times(Sequence[Tensor]):
    """Coordinates times a factor, multiplied on access."""

    def __init__(self, factor: float, gammas: Sequence[Array]) -> None:
        self._factor, self._gammas = factor, gammas

    def __len__(self) -> int:
        return len(self._gammas)

    @overload
    def __getitem__(self, position: int) -> Tensor: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Tensor]: ...
    def __getitem__(self, position: int | slice) -> Tensor | Sequence[Tensor]:
        if isinstance(position, slice):
            return Times(self._factor, self._gammas[position])
        return self._factor * torch.from_numpy(self._gammas[position])


def _chosen(blocks: Sequence[Tensor], whole: Collection[int], room: int) -> tuple[Array, list[Tensor]]:
    """Returns the largest coordinates' places in the row of all blocks not sent whole, and each block's sent values."""
    free = [np.zeros(0, np.float32) if position in whole else gamma.numpy() for position, gamma in enumerate(blocks)]
    places, starts = sparse_sign.chosen(free, room), np.cumsum([*map(len, free)])
    found = np.split(np.concatenate(free)[places], np.searchsorted(places, starts[:-1]))
    return places, [
        gamma if position in whole else torch.from_numpy(found[position]) for position, gamma in enumerate(blocks)
    ]


def _joined(encoded: Sequence[Tensor], kinds: Sequence[Kind], kind: Kind) -> Array:
    chosen = [values for values, precision in zip(encoded, kinds, strict=True) if precision == kind]
    return torch.cat(chosen).numpy() if chosen else np.zeros(0, dtype=DTYPES[kind])


def _finite(position: int, gamma: Tensor) -> Tensor:
    # Written so that NaN fails too. From 2¹²⁷, rounding up could exceed the range of fp32.
    if not bool((gamma.abs() < LIMIT).all()):
        raise FerretError.of_field(
            "contribution.non_finite", f"coordinates of block {position}", None, "hold NaN, infinity or a huge value"
        )
    return gamma


def _scale(gamma: Tensor, sent: Tensor, kind: Kind, position: int) -> float:
    """Returns the block's scale before it is stored; 0 if all coordinates are 0."""
    largest = float(gamma.abs().max()) if len(gamma) else 0.0
    if largest == 0:
        return 0.0
    if kind in SIGNS:
        scale = _preserving_scale(gamma.double(), sent.double().abs())
        return float(_finite(position, torch.tensor(scale, dtype=torch.float64)))
    return largest / 127 if kind == "int8" else math.ldexp(1.0, math.frexp(largest)[1] - 15)


def _preserving_scale(gamma: Tensor, magnitudes: Tensor) -> float:
    """Returns ‖γ‖² / ‖γ_sent‖₁; the largest coordinate is always sent."""
    return float(pairwise(lanes(gamma * gamma)) / pairwise(lanes(magnitudes)))


def _stored(scales: Sequence[float], kinds: Sequence[Kind]) -> tuple[Array, int]:
    """Returns the scales in half precision, fp16 (blocks,), and the exponent of their common factor."""
    largest = max(scales, default=0.0)
    exponent = math.frexp(largest)[1] - 15 if largest else 0
    relative = np.array([math.ldexp(scale, -exponent) for scale in scales])
    nearest = relative.astype(np.float16)
    low = (nearest < relative) & ~np.isin(kinds, SIGNS)
    return np.where(low, np.nextafter(nearest, np.float16(np.inf)), nearest), exponent


def _encode(gamma: Tensor, scale: float, kind: Kind, seed: int, position: int) -> Tensor:
    if kind in SIGNS:
        return gamma < 0
    ratio = gamma.double() / (scale or 1.0)
    return ratio.half() if kind == "float16" else (ratio + dither(seed, position, len(gamma))).floor().to(torch.int8)


def dither(seed: int, position: int, count: int) -> Tensor:
    """Draws uniformly from [0, 1), fp64 (count,)."""
    words = draw(seed, torch.arange(-(-count // 4)), 1, position, Tag.STOCHASTIC_ROUNDING)
    return words.flatten()[:count] * 2.0**-32
