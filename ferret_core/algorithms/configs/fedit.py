"""FedIT's options and contributions: the update of the adapters."""

from __future__ import annotations

from pydantic import Field

from ferret_core.algorithms.configs._base import Adam, LowRank, Preset
from ferret_core.algorithms.configs._traits import Traits
from ferret_core.training.config import LOCAL

PRESETS = {
    "fedit_sgd": Preset(
        "FedIT-SGD: FedIT with plain gradient descent instead of Adam.",
        {"local": {"optimizer": "sgd", "learning_rate": 1e-2}},
    )
}


class Config(LowRank):
    """FedIT's options: rank 8 on queries and values; the authors' code uses rank 16, on queries alone."""

    local: Adam = Field(default=Adam(), description=LOCAL)

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, dense=True, comparable=True, decodable=True, adapts=True, own_shapes=True)
