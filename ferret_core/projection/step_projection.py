"""Projection of an update step by step: projections are linear, so the coordinates of all steps add up to the update's.

    γ_l = 0;  for each step t, when it is made:   γ_l ← γ_l + coordinates of (w_l,t−1 − w_l,t)

Nothing of the model's size is kept: neither the update nor the weights at its start. So the K_l must be chosen before
the first step. Every step costs as much as one projection of the whole update.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ferret_core.projection.bases.base import Basis
from ferret_core.projection.block_views import check_below, check_complete, check_counts, check_finite, kernel_of
from ferret_core.projection.blocks import Block, Piece
from ferret_core.projection.project import Projected


class StepProjection:
    """Coordinates of the sum of all steps so far: ``K`` for each block, under one ``seed``.

    ``parameters``: the model's, contiguous, of any type in ``FLOATS``. Raises ``projection.invalid`` like ``project``.
    """

    def __init__(
        self, parameters: Mapping[str, Tensor], blocks: Sequence[Block], basis: Basis, K: Sequence[int], seed: int
    ) -> None:
        check_below("seed", seed, 64)
        check_counts(K, blocks)
        check_complete(blocks)
        self._blocks, self._basis, self._seed = blocks, basis, seed
        device = next(iter(parameters.values())).device
        self._gammas = [torch.zeros(count, device=device) for count in K]
        self._pieces = defaultdict[int, list[tuple[int, Piece]]](list)
        for position, block in enumerate(blocks):
            for piece in block.pieces:
                self._pieces[id(parameters[piece.parameter])].append((position, piece))

    @torch.no_grad()
    def add(self, parameter: Tensor, after: Tensor) -> None:
        """Adds the step from one of the ``parameters`` to ``after``, fp32 of its shape: the difference is in fp32."""
        begin, end = parameter.detach().view(-1), after.view(-1)
        for position, piece in self._pieces[id(parameter)]:
            gamma, block = self._gammas[position], self._blocks[position]
            if len(gamma):
                part = slice(piece.begin, piece.begin + piece.length)
                kernel = kernel_of(block, self._basis, after)
                gamma += kernel.project(begin[part], end[part], block, len(gamma), self._seed, start=piece.start)

    def projected(self) -> Projected:
        """Returns the coordinates, as ``project`` does; raises ``training.non_finite`` like it."""
        check_finite(self._gammas, self._blocks)
        return Projected(self._seed, self._gammas)
