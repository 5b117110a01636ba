"""FedProx's options and contributions: the update."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from ferret_core.algorithms.configs.base import SendsUpdate
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.protocol.limits import MAX_REAL
from ferret_core.training.config import LOCAL, LocalConfig


class Config(SendsUpdate):
    """FedProx's options."""

    mu: float = Field(
        default=0.01, ge=0, le=MAX_REAL, description="Weight μ of the proximal term μ/2 ‖w − w₀‖²; at 0 it is FedAvg"
    )
    local: LocalConfig = Field(default=LocalConfig(), description=LOCAL)

    @model_validator(mode="after")
    def _whole_gradients(self) -> Self:
        if self.local.optimizer_in_backward:
            raise ValueError("local.optimizer_in_backward = True keeps no gradient for the proximal term")
        return self

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, dense=True, comparable=True, decodable=True, corrects_steps=True)
