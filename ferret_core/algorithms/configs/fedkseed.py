"""FedKSeed's options and contributions: slopes along drawn directions."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from pydantic import Field

from ferret_core.algorithms.configs.base import ContributionSize, Preset, check_layouts, check_metadata, size_of
from ferret_core.algorithms.configs.norms import Norms, norm
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes, count
from ferret_core.projection import FORMAT_VERSION
from ferret_core.projection.coordinate_encoding import Layout
from ferret_core.protocol.limits import MAX_REAL
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import Contribution
from ferret_core.training.config import LOCAL, ZerothOrderConfig

PRESETS = {
    "fedkseed_pro": Preset(
        "FedKSeed-Pro: FedKSeed that draws directions with a steep loss more often.", {"sampling": "importance"}
    )
}


class Config(StrictModel):
    """FedKSeed's options; defaults of the rate, ε, T and K are from the paper."""

    K: int = Field(default=4096, ge=1, le=2**20, description="Candidate seeds")
    sampling: Literal["uniform", "importance"] = Field(
        default="uniform", description="Sampling of candidates; importance: directions with a steep loss more often"
    )
    clip: float = Field(
        default=1000.0, gt=0, le=MAX_REAL, description="Largest |ĝ| that counts in the probabilities, for importance"
    )
    local: ZerothOrderConfig = Field(default=ZerothOrderConfig(), description=LOCAL)

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_metadata(contribution, {"projection": FORMAT_VERSION, "seed": task.seed})
        check_layouts(contribution.arrays, self._layouts)

    def size(self, shapes: Shapes) -> ContributionSize:
        return size_of(self._layouts)

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        """Returns the norm of a walk along random signs: each step moves every weight by its slope times the rate."""
        d, step = count(shapes), self.local.learning_rate / self.local.perturbations
        return Norms.of([step * math.sqrt(d) * norm(contribution.arrays["slopes"])], [d])

    @property
    def traits(self) -> Traits:
        return Traits(
            zeroth_order=self.local,
            sparse=True,
            directions=lambda shapes: self.K,
            aggregation_vectors=0,
            shardable=True,
        )

    @property
    def _layouts(self) -> dict[str, Layout]:
        return {"slopes": Layout(np.dtype(np.float32), (self.local.directions,))}
