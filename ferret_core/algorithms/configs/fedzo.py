"""FedZO's options and contributions: the update."""

from __future__ import annotations

from pydantic import Field

from ferret_core.algorithms.configs.base import Preset, SendsUpdate
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.training.config import LOCAL, ZerothOrderConfig

PRESETS = {
    "fedmezo": Preset(
        "FedMeZO: FedZO with the rate and ε that were best for most tasks of MeZO's paper.",
        {"local": {"learning_rate": 1e-6, "epsilon": 1e-3}},
    )
}


class Config(SendsUpdate):
    """FedZO's options: b₁ is ``local.steps``, b₂ is ``local.perturbations``."""

    local: ZerothOrderConfig = Field(default=ZerothOrderConfig(), description=LOCAL)

    @property
    def traits(self) -> Traits:
        return Traits(zeroth_order=self.local, dense=True, comparable=True, decodable=True, shardable=True)
