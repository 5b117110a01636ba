"""T on the GPU: entries are drawn and used in registers and never stored, four per call of the generator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import triton.language as tl
from torch import Tensor

from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels.base import ReconstructionTerm
from ferret_core.projection.kernels.gpu._dense import project, subtract_columns
from ferret_core.projection.kernels.gpu._jit import Value, jit
from ferret_core.projection.kernels.gpu._launch import subtract
from ferret_core.projection.kernels.gpu._philox import SHAPE, TILE, draw
from ferret_core.projection.philox import Tag
from ferret_core.projection.variance import truncated_normal_moments

TAG = tl.constexpr(int(Tag.TRUNCATED_NORMAL))
STEP = tl.constexpr(2.0**-24)


@final
class Kernel:
    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int, *, start: int = 0) -> Tensor:
        rho, _ = truncated_normal_moments(block.size)
        return project(_times, before, after, block, K, seed, start, _constants(block.size)) * (1 / (rho * K))

    def apply_(
        self, weights: Tensor, block: Block, terms: Sequence[ReconstructionTerm], *, start: int = 0, rounding: int = 0
    ) -> None:
        constants = _constants(block.size)
        subtract(subtract_columns, weights, block, terms, start, rounding, constants, TIMES=_times)


def _constants(d: int) -> tuple[float, float]:
    """Returns ε and ε²/6."""
    return 1 / math.sqrt(d), 1 / (6 * d)


@jit
def _times(x: Value, seed: Value, tile: Value, k: Value, block: Value, constants: Value) -> Value:
    """Returns x·v in fp32: every operation of the format's polynomial is rounded separately."""
    words = draw(seed, tile * (TILE // 4) + tl.arange(0, TILE // 4), k, block, TAG)
    u = ((tl.reshape(words, SHAPE) >> 8).to(tl.int32) * 2 + (1 - (1 << 24))).to(tl.float32) * STEP
    return x * ((u * constants[0]) * (1 - (1 - u * u) * constants[1]))
