"""G on the GPU: at memory speed, for any K and any number of contributions, many blocks per launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from torch import Tensor

from ferret_core.projection.blocks import Block
from ferret_core.projection.kernels._base import ProjectionInput, ReconstructionTerm, UpdateInput
from ferret_core.projection.kernels.gpu._apply_buckets import apply_all_
from ferret_core.projection.kernels.gpu._project_buckets import project_all


@final
class Kernel:
    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int, *, start: int = 0) -> Tensor:
        return project_all([ProjectionInput(before, after, block, K, start)], seed)[0]

    def project_all(self, pairs: Sequence[ProjectionInput], seed: int) -> list[Tensor]:
        return project_all(pairs, seed)

    def apply_(
        self, weights: Tensor, block: Block, terms: Sequence[ReconstructionTerm], *, start: int = 0, rounding: int = 0
    ) -> None:
        apply_all_([UpdateInput(weights, block, terms, start)], rounding)

    def apply_all_(self, moves: Sequence[UpdateInput], rounding: int = 0) -> None:
        apply_all_(moves, rounding)
