"""Says how much a contribution can reveal of single examples, and who will be able to read it.

With every coordinate of a block (K_l = d_l), a gradient gives back the tokens of its examples when there are few of
them: Zhu et al., "Deep Leakage from Gradients", NeurIPS 2019. Fewer coordinates hide the words, but tell whether a
given text was among the examples (``docs/what-leaves-your-site.md`` has figures).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from pydantic import Field

from ferret_core.catalog import ResolvedExperiment
from ferret_core.models.shapes import Shapes, count
from ferret_core.protocol.spec import Strict

FEW_EXAMPLES = 16
"""A contribution of fewer examples may give them away."""
LARGE_SHARE = 0.1
"""A block with more coordinates per weight may give its examples away."""


class Exposure(Strict):
    """What the contributions to an experiment reveal. The fields are upper bounds, before anything is trained."""

    examples: int = Field(description="Distinct examples that a contribution is computed from")
    sequences: int = Field(description="Sequences that a round trains on: steps × batch × accumulation")
    share: float = Field(description="Largest K_l / d_l of a block: coordinates for each weight")
    whole_blocks: int = Field(description="Blocks that are sent whole")
    separate: bool = Field(description="True if an update tells the contributions of a round apart")

    @classmethod
    def of(cls, experiment: ResolvedExperiment, shapes: Shapes, examples: int) -> Self:
        """For a site with so many ``examples``, of a model whose tuned parameters have these ``shapes``."""
        trained = sequences(experiment, examples)
        share, whole_blocks = _share(experiment, shapes)
        return cls(
            examples=min(examples, trained) if trained else examples,
            sequences=trained,
            share=share,
            whole_blocks=whole_blocks,
            separate=not experiment.traits.comparable,
        )

    @property
    def reasons(self) -> list[str]:
        """Why a contribution may reveal single examples; empty where none applies."""
        found = {
            f"it is computed from {self.examples} examples": self.examples < FEW_EXAMPLES,
            f"it has {self.share:.2g} coordinates for each weight of a block": self.share > LARGE_SHARE,
            f"it holds {self.whole_blocks} blocks of the model whole": self.whole_blocks > 0,
        }
        return [reason for reason, applies in found.items() if applies]


def sequences(experiment: ResolvedExperiment, examples: int) -> int:
    """Sequences that a round trains on, those of each perturbation counted; 0 for an algorithm without local steps."""
    local = experiment.traits.local
    return 0 if local is None else local.sequences_for(examples)


def largest_share(counts: Sequence[int], sizes: Sequence[int]) -> float:
    """The largest K_l / d_l of blocks with these coordinates and weights."""
    return max((K / size for K, size in zip(counts, sizes, strict=True)), default=0.0)


def _share(experiment: ResolvedExperiment, shapes: Shapes) -> tuple[float, int]:
    """The largest K_l / d_l, and how many blocks are sent whole.

    K_l is that of an update in which all weights move alike. Without blocks, a coordinate takes at least one bit.
    """
    if (projection := experiment.traits.projection) is None:
        return min(1.0, 8 * experiment.config.size(shapes).arrays / count(shapes)), 0
    blocks = projection.cut(shapes)
    counts = projection.allocate([math.sqrt(block.size) for block in blocks], blocks)
    return largest_share(counts, [block.size for block in blocks]), sum(block.whole for block in blocks)
