"""Figures of a round's update, as stored and shown: one per block, and one per pair of participants.

Needs no torch. Blocks are the projection's blocks, else the tensors. If there are very many, neighbours are merged, so
that a round's stored statistics stay within about 50 kB.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ferret_core.catalog import ResolvedExperiment
from ferret_core.models.shapes import Shapes, sizes
from ferret_core.projection.blocks import Block, cut
from ferret_core.protocol.spec import StrictModel
from ferret_core.protocol.wire import Array

MOST_BLOCKS = 1024
DIGITS = 4


class BlockGroup(NamedTuple):
    """Neighbouring blocks that share one figure; usually a single block."""

    name: str
    size: int
    first: int
    end: int


class CosineMatrix(StrictModel):
    """Cosines between participants' updates: of the first with the second, the third …, of the second with the third …

    ``errors`` has the standard error of each cosine, caused by the projection or by sampling of weights; 0 for exact
    values. None for a pair with a zero update.
    """

    participants: list[str]
    cosines: list[float | None]
    errors: list[float | None]


class ReconstructionError(StrictModel):
    """Expected ‖Δ~ − Δ‖ / ‖Δ‖ of the participants' mean update Δ and its reconstruction Δ~, with its range: two
    standard errors, or the values for unknown cosines between 0 and 1.
    """

    expected: float
    low: float
    high: float


class UpdateStatistics(StrictModel):
    """By part, in the model's order: the root mean square over its weights of what the round moved them by (``step``),
    of the noise of random directions that is expected in it, of the weights before, and of one participant's own
    update as its coordinates tell it. ``K`` is the mean over participants. What the algorithm does not have is None.
    """

    step: list[float]
    weights: list[float]
    noise: list[float] | None = None
    update: list[float] | None = None
    K: list[float] | None = None
    error: ReconstructionError | None = None
    agreement: CosineMatrix | None = None


def blocks_of(experiment: ResolvedExperiment, shapes: Shapes) -> Sequence[Block]:
    """Returns the projection's blocks, else one block per tensor."""
    projection = experiment.traits.projection
    return cut(sizes(shapes), "tensor") if projection is None else projection.cut(shapes)


def group_blocks(blocks: Sequence[Block]) -> list[BlockGroup]:
    """Merges neighbours until there are at most ``MOST_BLOCKS`` parts."""
    width = -(-len(blocks) // MOST_BLOCKS)
    groups = [(first, blocks[first : first + width]) for first in range(0, len(blocks), width)]
    return [
        BlockGroup(
            group[0].name if len(group) == 1 else f"{group[0].name} … {group[-1].name}",
            sum(block.size for block in group),
            first,
            first + len(group),
        )
        for first, group in groups
    ]


def root_mean_squares(squares: Array, parts: Sequence[BlockGroup]) -> list[float]:
    """Returns the RMS by part from ``squares``, fp64 (blocks,): sums of squares over the weights of each block."""
    return shortened(np.sqrt(_sums(squares, parts) / np.array([part.size for part in parts])))


def sums(values: Array, parts: Sequence[BlockGroup]) -> list[float]:
    """Returns the sum by part of ``values``, fp64 (blocks,)."""
    return shortened(_sums(values, parts))


def shortened(values: Array) -> list[float]:
    """Rounds to ``DIGITS`` significant digits."""
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]


def _sums(values: Array, parts: Sequence[BlockGroup]) -> Array:
    return np.add.reduceat(values, [part.first for part in parts])
