"""SCAFFOLD's options, and what its participants send: their update, and the change of their control variate."""

from __future__ import annotations

from ferret_core.algorithms.configs._base import check_layouts, dense
from ferret_core.models.shapes import Shapes
from ferret_core.protocol.spec import RoundTask, Strict
from ferret_core.protocol.wire import Contribution
from ferret_core.training.config import LocalConfig

SENT = ("update", "control")


class Config(Strict):
    """SCAFFOLD's options."""

    local: LocalConfig = LocalConfig()

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_layouts(contribution.arrays, dict.fromkeys(SENT, dense(shapes)))
