"""SCAFFOLD's options and contributions: the update, and the change of the control variate."""

from __future__ import annotations

from pydantic import Field

from ferret_core.algorithms.configs.base import ContributionSize, check_layouts, dense, size_of
from ferret_core.algorithms.configs.norms import Norms, dense_norms
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.models.shapes import Shapes
from ferret_core.protocol.spec import RoundTask, StrictModel
from ferret_core.protocol.wire import Contribution
from ferret_core.training.config import LOCAL, LocalConfig

SENT = ("update", "control")


class Config(StrictModel):
    """SCAFFOLD's options."""

    local: LocalConfig = Field(default=LocalConfig(), description=LOCAL)

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_layouts(contribution.arrays, dict.fromkeys(SENT, dense(shapes)))

    def size(self, shapes: Shapes) -> ContributionSize:
        return size_of(dict.fromkeys(SENT, dense(shapes)))

    def norms(self, contribution: Contribution, shapes: Shapes) -> Norms:
        """Returns the norms of the update, then of the control variate's change, scaled to the effect of one step."""
        update, control = (dense_norms(contribution.arrays[name], shapes) for name in SENT)
        steps = self.local.learning_rate * control.values
        return Norms.of([*update.values, *steps], [*update.sizes, *(0 * control.sizes)])

    @property
    def traits(self) -> Traits:
        return Traits(
            first_order=self.local,
            counts_whole=True,
            participant_vectors=3,
            aggregation_vectors=7,
            decodable=True,
            corrects_steps=True,
        )
