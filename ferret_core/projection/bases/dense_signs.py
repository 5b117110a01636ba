"""R, dense signs: every entry of V is +1 or −1, one random bit each.

The cheapest basis with independent entries, for comparison with T: the same error, (d − 2 + κ)/K with κ = 1 instead of
1.8, for one random bit per entry instead of 32. Cost: d·K entries, 128 per Philox call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, final

import torch
from torch import Tensor

from ferret_core.projection.bases.base import Moments
from ferret_core.projection.blocks import Block
from ferret_core.projection.deterministic_sum import lanes, pairwise
from ferret_core.projection.philox import TILE, Tag, sign_bits, sign_bits_at

ENTRIES = 1 << 18


@final
class Basis:
    letter: ClassVar[str] = "R"

    def project_into(self, gamma: Tensor, delta: Tensor, block: Block, start: int, seed: int) -> None:
        """γ += Vᵀ·Δ / K."""
        for first, signs in _columns(seed, block, len(gamma), start, len(delta), delta.device):
            signed = (delta.view(torch.int32) ^ signs).view(torch.float32)
            gamma[first : first + len(signs)] += pairwise(lanes(signed).T) * (1 / len(gamma))

    def reconstruct(self, coefficients: Tensor, count: int, block: Block, start: int, seed: int) -> Tensor:
        """V·c. The format fixes the order of k."""
        total = coefficients.new_zeros(count)
        for first, signs in _columns(seed, block, len(coefficients), start, count, coefficients.device):
            signed = coefficients[first : first + len(signs), None].view(torch.int32) ^ signs
            for column in signed.view(torch.float32):
                total += column
        return total

    def entries(self, rows: Tensor, columns: Tensor, block: Block, K: int, seed: int) -> Tensor:
        bits = sign_bits_at(seed, block.id, rows[:, None], row=columns, tag=Tag.DENSE_SIGNS)
        return torch.where(bits == 0, 1.0, -1.0)

    def moments(self, d: int) -> Moments:
        return Moments(1.0, 1.0)


def _columns(
    seed: int, block: Block, K: int, start: int, count: int, device: torch.device
) -> Iterator[tuple[int, Tensor]]:
    """Yields (k, sign bits of elements start … of V's columns from k on, as rows), a chunk of columns at a time."""
    drawn = count + -count % TILE
    step = max(1, ENTRIES // drawn)
    for first in range(0, K, step):
        columns = torch.arange(first, min(first + step, K), device=device)[:, None]
        yield first, sign_bits(seed, block.id, start, start + count, device, row=columns, tag=Tag.DENSE_SIGNS)
