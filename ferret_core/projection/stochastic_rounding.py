"""Deterministic stochastic rounding of fp32 to half precision: sums keep their mean, and replicas keep equal bits.

A bf16 weight has 8 significant bits, so nearest rounding drops every update below 1/512 of it. Here a value between two
neighbours is rounded up with the probability that preserves its expectation: its distance above the lower one, as a
fraction, is compared with 16 random bits (bf16) or 13 (fp16) of the format's tag 6.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ferret_core.projection.philox import Tag, draw

FP16_SUBNORMAL = 2.0**-14
FP16_INFINITY = 0x7C00


def stochastic(values: Tensor, dtype: torch.dtype, seed: int, block_id: int, start: int) -> Tensor:
    """Rounds fp32 ``values`` (n,), elements ``start`` … of the block, to ``dtype``: bfloat16 or float16.

    Element i: group ⌊i/8⌋, word ⌊(i mod 8)/2⌋, its low half for even i, its high half for odd i. A value beyond the
    largest finite one becomes infinite; NaN stays NaN.
    """
    chances = _halves(seed, block_id, start, len(values), values.device)
    bits = values.view(torch.int32)
    rounded = _to_bfloat16(bits, chances) if dtype == torch.bfloat16 else _to_float16(values.abs(), chances)
    signed = rounded | (bits >> 16) & 0x8000
    return torch.where(values.isnan(), torch.nan, signed.to(torch.int16).view(dtype))


def _to_bfloat16(bits: Tensor, chances: Tensor) -> Tensor:
    """Returns the magnitude in bf16: random bits below the last place carry into it; they cannot exceed infinity."""
    magnitude = bits & 0x7FFFFFFF
    infinite = magnitude >= 0x7F800000
    return torch.where(infinite, magnitude, magnitude + chances) >> 16


def _to_float16(magnitudes: Tensor, chances: Tensor) -> Tensor:
    """Returns the magnitude in fp16: 13 bits below the last place; below 2⁻¹⁴ that place is 2⁻²⁴ for all."""
    chances = chances >> 3
    normal = ((magnitudes.view(torch.int32) + chances) >> 13) - (112 << 10)
    subnormal = ((magnitudes.clamp(max=FP16_SUBNORMAL) * 2.0**37).to(torch.int32) + chances) >> 13
    return torch.where(magnitudes < FP16_SUBNORMAL, subnormal, normal.clamp(max=FP16_INFINITY))


def _halves(seed: int, block_id: int, start: int, count: int, device: torch.device) -> Tensor:
    """Draws 16 random bits for each element, int32 (count,)."""
    groups = torch.arange(start // 8, -(-(start + count) // 8), device=device)
    words = draw(seed, groups, 0, block_id, Tag.STOCHASTIC_ROUNDING)
    halves = torch.stack([words & 0xFFFF, words >> 16], dim=-1).flatten().to(torch.int32)
    return halves[start % 8 : start % 8 + count]
