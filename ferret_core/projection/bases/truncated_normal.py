"""T, the paper's basis: entries from the standard normal cut to [−1/√d, 1/√d] (section 3.2, equations 6 to 8).

On so short an interval the normal density is nearly flat, and its inverse distribution function is the short
polynomial of ``_values``: the same bits everywhere, no ``erfinv``. Cost: d·K entries, four to a Philox call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar, final

import torch
from torch import Tensor

from ferret_core.projection.bases._base import Moments, Term
from ferret_core.projection.blocks import Block
from ferret_core.projection.moments import truncated_normal
from ferret_core.projection.philox import Tag, draw
from ferret_core.projection.reduce import PairwiseSum, lanes

ELEMENTS = 1 << 16
ENTRIES = 1 << 18


@final
class Basis:
    letter: ClassVar[str] = "T"

    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int) -> Tensor:
        """γ = (ρK)⁻¹ Vᵀ(before − after): the paper's equation 6, with the block's own ρ and K."""
        if K == 0:
            return before.new_empty(0)
        sums = PairwiseSum()
        for start, stop in _spans(block.size, ELEMENTS):
            delta = before[start:stop] - after[start:stop]
            products = [lanes(V * delta).T for _, V in _columns(seed, block, K, start, stop, before.device)]
            sums.add(torch.cat(products, dim=1))
        return sums.total() * (1 / (self.moments(block.size).rho * K))

    def apply_(self, weights: Tensor, block: Block, terms: Sequence[Term]) -> None:
        for seed, coefficients in terms:
            for start, stop in _spans(block.size, ELEMENTS):
                weights[start:stop] -= _combination(seed, block, coefficients, start, stop)

    def entries(self, rows: Tensor, columns: Tensor, block: Block, K: int, seed: int) -> Tensor:
        words = draw(seed, rows // 4, columns[:, None], block.id, Tag.TRUNCATED_NORMAL)
        return _values(words[:, torch.arange(len(rows), device=rows.device), rows % 4], block.size).T

    def moments(self, d: int) -> Moments:
        return Moments(*truncated_normal(d))


def _combination(seed: int, block: Block, coefficients: Tensor, start: int, stop: int) -> Tensor:
    """V·c for elements start … stop−1. The format fixes the order of k and that products are rounded before sums."""
    total = coefficients.new_zeros(stop - start)
    for first, V in _columns(seed, block, len(coefficients), start, stop, coefficients.device):
        for product in V * coefficients[first : first + len(V), None]:
            total += product
    return total


def _columns(
    seed: int, block: Block, K: int, start: int, stop: int, device: torch.device
) -> Iterator[tuple[int, Tensor]]:
    """(k, rows start … stop−1 of V's columns from k on, transposed), a chunk of columns at a time; 4 divides start."""
    groups = torch.arange(start // 4, -(-stop // 4), device=device)
    for first, last in _spans(K, max(1, ENTRIES // (stop - start))):
        columns = torch.arange(first, last, device=device)[:, None]
        words = draw(seed, groups, columns, block.id, Tag.TRUNCATED_NORMAL)
        yield first, _values(words.flatten(1)[:, : stop - start], block.size)


def _values(words: Tensor, d: int) -> Tensor:
    """u·ε·(1 − (ε²/6)(1 − u²)) for the 2²⁴ midpoints u of (−1, 1); ε and ε²/6 are rounded to fp32 once."""
    u = ((words >> 8) * 2 + (1 - 2**24)).to(torch.float32) * 2.0**-24
    return (u * (1 / math.sqrt(d))) * (1 - (1 - u * u) * (1 / (6 * d)))


def _spans(total: int, step: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + step, total)) for start in range(0, total, step))
