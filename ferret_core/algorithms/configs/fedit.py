"""FedIT's options and contributions: the update of the adapters."""

from __future__ import annotations

from pydantic import Field

from ferret_core.algorithms.configs.base import Preset, SendsUpdate
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.protocol.limits import MAX_REAL, MAX_WIDTH, Label
from ferret_core.training.config import LOCAL, LocalConfig

PRESETS = {
    "fedit_sgd": Preset(
        "FedIT-SGD: FedIT with plain gradient descent instead of Adam.",
        {"local": {"optimizer": "sgd", "learning_rate": 1e-2}},
    )
}


class Adam(LocalConfig):
    """Local Adam, at the rate of the authors."""

    learning_rate: float = Field(
        default=3e-4, gt=0, le=MAX_REAL, description="Local learning rate η, constant over the steps"
    )


class Config(SendsUpdate):
    """FedIT's options: LoRA, W x becomes W x + (alpha / rank) · B A x.

    The rank is 8 on queries and values; the authors' code uses 16, on queries alone.
    """

    rank: int = Field(default=8, ge=1, le=MAX_WIDTH, description="Rows of A and columns of B")
    alpha: float = Field(
        default=16.0, gt=0, le=MAX_REAL, description="The adapter's output is multiplied by alpha / rank"
    )
    dropout: float = Field(default=0.05, ge=0, lt=1, description="Dropout rate of the adapter's inputs in training")
    targets: list[Label] = Field(
        default=["q_proj", "v_proj"],
        min_length=1,
        max_length=1000,
        description="Linear layers with adapters, by the ends of their names",
    )
    local: Adam = Field(default=Adam(), description=LOCAL)

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, dense=True, comparable=True, decodable=True, adapts=True, own_shapes=True)
