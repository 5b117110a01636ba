"""R on the GPU: one bit per entry, 128 to a call of the generator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import triton.language as tl
from torch import Tensor

from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels.base import ReconstructionTerm
from ferret_core.projection.kernels.gpu._dense import project, subtract_columns
from ferret_core.projection.kernels.gpu._jit import Value, jit
from ferret_core.projection.kernels.gpu._launch import subtract
from ferret_core.projection.kernels.gpu._philox import flip, sign_bits
from ferret_core.projection.philox import Tag

TAG = tl.constexpr(int(Tag.DENSE_SIGNS))


@final
class Kernel:
    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int, *, start: int = 0) -> Tensor:
        return project(_times, before, after, block, K, seed, start, ()) * (1 / K)

    def apply_(
        self, weights: Tensor, block: Block, terms: Sequence[ReconstructionTerm], *, start: int = 0, rounding: int = 0
    ) -> None:
        subtract(subtract_columns, weights, block, terms, start, rounding, (), TIMES=_times)


@jit
def _times(x: Value, seed: Value, tile: Value, k: Value, block: Value, constants: Value) -> Value:
    return flip(x, sign_bits(seed, tile, k, block, TAG))
