"""FedKSeed's options, and what its participants send: slopes along drawn directions."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from ferret_core.algorithms.configs._base import Size, check_slopes, size_of, slope_norms, slopes
from ferret_core.algorithms.configs._norms import Norms
from ferret_core.models.shapes import Shapes
from ferret_core.protocol.spec import RoundTask, Strict
from ferret_core.protocol.wire import Contribution
from ferret_core.training.config import LOCAL, ZerothOrderConfig


class Config(Strict):
    """FedKSeed's options; the rate, ε, T and K are the paper's."""

    shardable: ClassVar[Literal[True]] = True

    K: int = Field(default=4096, ge=1, le=2**20, description="Candidate seeds")
    local: ZerothOrderConfig = Field(default=ZerothOrderConfig(), description=LOCAL)

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_slopes(contribution, task, self.local.directions)

    def size(self, shapes: Shapes) -> Size:
        return size_of(slopes(self.local.directions))

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        return slope_norms(contribution, shapes, self.local)

    @property
    def comparable(self) -> bool:
        return False
