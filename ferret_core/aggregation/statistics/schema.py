"""A round's update in figures, as they are stored and shown: one per block, and one per pair of participants.

Needs no torch. Blocks are those that the update is projected in, else the tensors; of very many, neighbours are put
together, so that what is stored of a round stays within some 50 kB.
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
    """Neighbouring blocks that share one figure: most often one block."""

    name: str
    size: int
    first: int
    end: int


class CosineMatrix(StrictModel):
    """Cosines between participants' updates: of the first with the second, the third …, of the second with the third …

    ``errors`` are standard errors, as the projection, or looking at some of the weights alone, puts them on each
    cosine; 0 where nothing was estimated. None for a pair one of which has not moved.
    """

    participants: list[str]
    cosines: list[float | None]
    errors: list[float | None]


class ReconstructionError(StrictModel):
    """‖Δ~ − Δ‖ / ‖Δ‖ of the participants' mean update Δ and its reconstruction Δ~, expected, and between which values
    it lies: two standard errors, or all that the participants' unknown cosines from 0 to 1 allow."""

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
    """Those that the update is projected in, else one for each tensor."""
    projection = experiment.traits.projection
    return cut(sizes(shapes), "tensor") if projection is None else projection.cut(shapes)


def group_blocks(blocks: Sequence[Block]) -> list[BlockGroup]:
    """As many neighbours to a part as bring the parts down to ``MOST_BLOCKS``."""
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
    """By part, of ``squares``, fp64 (blocks,): sums of squares over the weights of each block."""
    return shortened(np.sqrt(_sums(squares, parts) / np.array([part.size for part in parts])))


def sums(values: Array, parts: Sequence[BlockGroup]) -> list[float]:
    """By part, of ``values``, fp64 (blocks,)."""
    return shortened(_sums(values, parts))


def shortened(values: Array) -> list[float]:
    """To ``DIGITS`` significant digits."""
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]


def _sums(values: Array, parts: Sequence[BlockGroup]) -> Array:
    return np.add.reduceat(values, [part.first for part in parts])
