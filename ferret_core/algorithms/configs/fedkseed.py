"""FedKSeed's options and contributions: slopes along drawn directions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ferret_core.algorithms.configs.base import ContributionSize, Preset, check_slopes, size_of, slope_norms, slopes
from ferret_core.algorithms.configs.norms import Norms
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes
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
        check_slopes(contribution, task, self.local.directions)

    def size(self, shapes: Shapes) -> ContributionSize:
        return size_of(slopes(self.local.directions))

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        return slope_norms(contribution, shapes, self.local)

    @property
    def traits(self) -> Traits:
        return Traits(zeroth_order=self.local, shardable=True)
