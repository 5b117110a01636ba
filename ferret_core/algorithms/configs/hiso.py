"""HiSo's options and contributions: slopes along the round's directions."""

from __future__ import annotations

from pydantic import Field

from ferret_core.algorithms.configs.base import (
    ContributionSize,
    check_layouts,
    check_metadata,
    size_of,
    slope_norms,
    slopes,
)
from ferret_core.algorithms.configs.norms import Norms
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes
from ferret_core.projection import FORMAT_VERSION
from ferret_core.protocol.limits import MAX_SEQUENCES, MAX_STEPS
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import Contribution
from ferret_core.training.config import LOCAL, ZerothOrderConfig


class HisoLocalConfig(ZerothOrderConfig):
    """Steps of five directions, as in the authors' experiments; as many losses in total as FedKSeed."""

    steps: int = Field(
        default=40, ge=1, le=MAX_STEPS, description="Local steps per round", json_schema_extra={"unit": "steps"}
    )
    perturbations: int = Field(
        default=5,
        ge=1,
        le=MAX_SEQUENCES,
        description="Directions per step, two losses each, averaged",
        json_schema_extra={"unit": "directions"},
    )


class Config(StrictModel):
    """HiSo's options."""

    smoothing: float = Field(
        default=0.05,
        ge=0,
        lt=1,
        description="Share ν of the newest squared gradient in the shared curvature; 0 means no curvature: DeComFL",
    )
    local: HisoLocalConfig = Field(default=HisoLocalConfig(), description=LOCAL)

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_metadata(contribution, {"projection": FORMAT_VERSION, "seed": task.round_seed})
        check_layouts(contribution.arrays, slopes(self.local.directions))

    def size(self, shapes: Shapes) -> ContributionSize:
        return size_of(slopes(self.local.directions))

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        """Returns the norms for a curvature of 1: all participants of a round share the same curvature."""
        return slope_norms(contribution, shapes, self.local)

    @property
    def traits(self) -> Traits:
        return Traits(zeroth_order=self.local, comparable=True)
