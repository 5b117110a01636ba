"""I, the identity: an element is its own coordinate. For small blocks that are sent whole: K_l = d_l, no error."""

from __future__ import annotations

from typing import ClassVar, final

import torch
from torch import Tensor

from ferret_core.projection.bases.base import Moments
from ferret_core.projection.blocks import Block


@final
class Basis:
    letter: ClassVar[str] = "I"

    def project_into(self, gamma: Tensor, delta: Tensor, block: Block, start: int, seed: int) -> None:
        """γ_i += Δ_i."""
        gamma[start : start + len(delta)] += delta

    def reconstruct(self, coefficients: Tensor, count: int, block: Block, start: int, seed: int) -> Tensor:
        return coefficients[start : start + count]

    def entries(self, rows: Tensor, columns: Tensor, block: Block, K: int, seed: int) -> Tensor:
        return (rows[:, None] == columns).to(torch.float32)

    def moments(self, d: int) -> Moments:
        """Returns the moments of the single entry 1 per element."""
        return Moments(1.0, 1.0)
