"""I on the GPU: coordinates are the update itself, in fp32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
import triton
import triton.language as tl
from torch import Tensor

from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels.base import ReconstructionTerm
from ferret_core.projection.kernels.gpu._jit import Value
from ferret_core.projection.kernels.gpu._launch import nth, subtract
from ferret_core.projection.kernels.gpu._tiles import load, place, store


@final
class Kernel:
    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int, *, start: int = 0) -> Tensor:
        gamma = torch.zeros(K, device=after.device)
        torch.sub(before.float(), after.float(), out=gamma[start : start + len(after)])
        return gamma

    def apply_(
        self, weights: Tensor, block: Block, terms: Sequence[ReconstructionTerm], *, start: int = 0, rounding: int = 0
    ) -> None:
        subtract(_subtract, weights, block, terms, start, rounding)


@triton.jit(do_not_specialize=["terms", "rounding", "block"])
def _subtract(
    weights: Value, start: Value, count: Value, sheet: Value, terms: Value, rounding: Value, block: Value
) -> None:
    """w ← w − c for each term, over one tile."""
    tile, at, inside = place(tl.program_id(0), start, count)
    values = load(weights, at, inside)
    for n in range(terms):
        _, coefficients, _, _ = nth(sheet, n)
        values -= tl.load(coefficients + start + at, mask=inside, other=0.0)
    store(weights, at, inside, values, tile, rounding, block)
