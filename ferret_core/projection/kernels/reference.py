"""The reference: a family's own formulas in torch, on any device, a stretch of the block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

import torch
from torch import Tensor
from torch.nn.functional import pad

from ferret_core.projection.bases.base import Basis
from ferret_core.projection.blocks import Block
from ferret_core.projection.deterministic_sum import PairwiseSum, lanes
from ferret_core.projection.kernels.base import ReconstructionTerm
from ferret_core.projection.philox import TILE
from ferret_core.projection.stochastic_rounding import stochastic

STRETCH = 1 << 18


def squared_norm(before: Tensor, after: Tensor) -> Tensor:
    """Returns ‖before − after‖² of two vectors of any float type, fp64 (): differences in fp32, squares and sums in
    fp64.

    The same bits for any number of threads.
    """
    total = PairwiseSum()
    for begin, end in zip(before.split(STRETCH), after.split(STRETCH), strict=True):
        total.add(lanes((begin.float() - end.float()).double().square()))
    return total.total()


@final
class Kernel:
    def __init__(self, basis: Basis) -> None:
        self.basis = basis

    def project(self, before: Tensor, after: Tensor, block: Block, K: int, seed: int, *, start: int = 0) -> Tensor:
        gamma = torch.zeros(K, device=after.device)
        for part in _stretches(start, len(after)):
            delta = before[part.first : part.last].float() - after[part.first : part.last].float()
            aligned = pad(delta, (part.skip, 0))
            self.basis.project_into(gamma, aligned, block, part.start, seed)
        return gamma

    def apply_(
        self, weights: Tensor, block: Block, terms: Sequence[ReconstructionTerm], *, start: int = 0, rounding: int = 0
    ) -> None:
        sent = [term for term in terms if len(term.coefficients)]
        for part in _stretches(start, len(weights) if sent else 0):
            stored = weights[part.first : part.last]
            moved = stored.float()
            for term in sent:
                count = part.skip + len(stored)
                update = self.basis.reconstruct(term.coefficients, count, block, part.start, term.seed)
                moved -= update[part.skip :]
            if stored.dtype != torch.float32:
                moved = stochastic(moved, stored.dtype, rounding, block.id, part.start + part.skip)
            stored.copy_(moved)


class _Stretch(NamedTuple):
    """Elements first … last − 1 of a vector; ``skip`` elements before them start at the block's ``start``."""

    first: int
    last: int
    start: int
    skip: int


def _stretches(start: int, count: int) -> Iterator[_Stretch]:
    """Yields the vector cut at multiples of ``STRETCH`` in the block, parts extended down to a multiple of ``TILE``."""
    first = 0
    while first < count:
        element = start + first
        last = min(count, first + STRETCH - element % STRETCH)
        yield _Stretch(first, last, element - element % TILE, element % TILE)
        first = last
