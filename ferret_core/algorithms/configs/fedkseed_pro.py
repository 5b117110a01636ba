"""FedKSeed-Pro's options, and what its participants send: slopes along drawn directions."""

from __future__ import annotations

from pydantic import Field

from ferret_core.algorithms.configs._base import check_slopes
from ferret_core.models.shapes import Shapes
from ferret_core.protocol.spec import RoundTask, Strict
from ferret_core.protocol.wire import Contribution
from ferret_core.training.config import ZerothOrderConfig


class Config(Strict):
    """FedKSeed-Pro's options."""

    K: int = Field(default=4096, ge=1, le=2**20, description="Candidate seeds")
    clip: float = Field(default=1000.0, gt=0, description="Largest |ĝ| that counts in the probabilities")
    local: ZerothOrderConfig = ZerothOrderConfig()

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_slopes(contribution, task, self.local.directions)
