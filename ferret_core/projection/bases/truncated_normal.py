"""T, the paper's basis: entries from the standard normal cut to [−1/√d, 1/√d] (section 3.2, equations 6 to 8).

On such a short interval the normal density is nearly flat, and its inverse distribution function is the short
polynomial of ``_values``: the same bits everywhere, without ``erfinv``. Cost: d·K entries, four per Philox call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar, final

import torch
from torch import Tensor

from ferret_core.projection.bases.base import Moments
from ferret_core.projection.blocks import Block
from ferret_core.projection.deterministic_sum import lanes, pairwise
from ferret_core.projection.philox import Tag, draw
from ferret_core.projection.variance import truncated_normal_moments

ENTRIES = 1 << 18


@final
class Basis:
    letter: ClassVar[str] = "T"

    def project_into(self, gamma: Tensor, delta: Tensor, block: Block, start: int, seed: int) -> None:
        """γ += (ρK)⁻¹ Vᵀ·Δ: the paper's equation 6, with the block's own ρ and K."""
        scale = 1 / (self.moments(block.size).rho * len(gamma))
        for first, V in _columns(seed, block, len(gamma), start, len(delta), delta.device):
            gamma[first : first + len(V)] += pairwise(lanes(V * delta).T) * scale

    def reconstruct(self, coefficients: Tensor, count: int, block: Block, start: int, seed: int) -> Tensor:
        """Returns V·c. The format fixes the order of k and rounds products before sums."""
        total = coefficients.new_zeros(count)
        for first, V in _columns(seed, block, len(coefficients), start, count, coefficients.device):
            for product in V * coefficients[first : first + len(V), None]:
                total += product
        return total

    def entries(self, rows: Tensor, columns: Tensor, block: Block, K: int, seed: int) -> Tensor:
        words = draw(seed, rows // 4, columns[:, None], block.id, Tag.TRUNCATED_NORMAL)
        return _values(words[:, torch.arange(len(rows), device=rows.device), rows % 4], block.size).T

    def moments(self, d: int) -> Moments:
        return Moments(*truncated_normal_moments(d))


def _columns(
    seed: int, block: Block, K: int, start: int, count: int, device: torch.device
) -> Iterator[tuple[int, Tensor]]:
    """Yields (k, elements start … of V's columns from k on, as rows), a chunk of columns at a time."""
    groups = torch.arange(start // 4, -(-(start + count) // 4), device=device)
    step = max(1, ENTRIES // count)
    for first in range(0, K, step):
        columns = torch.arange(first, min(first + step, K), device=device)[:, None]
        words = draw(seed, groups, columns, block.id, Tag.TRUNCATED_NORMAL)
        yield first, _values(words.flatten(1)[:, :count], block.size)


def _values(words: Tensor, d: int) -> Tensor:
    """Returns u·ε·(1 − (ε²/6)(1 − u²)) for the 2²⁴ midpoints u of (−1, 1); ε and ε²/6 are rounded to fp32 once."""
    u = ((words >> 8) * 2 + (1 - 2**24)).to(torch.float32) * 2.0**-24
    return (u * (1 / math.sqrt(d))) * (1 - (1 - u * u) * (1 / (6 * d)))
