"""FedPTuning's options and contributions: the update of the prompt's encoder."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ferret_core.algorithms.configs.base import SoftPrompt
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.protocol.limits import MAX_REAL, MAX_WIDTH
from ferret_core.training.config import LOCAL, LocalConfig


class Adam(LocalConfig):
    """Local Adam; an encoder needs a larger learning rate than a model."""

    learning_rate: float = Field(
        default=1e-3, gt=0, le=MAX_REAL, description="Local learning rate η, constant over the steps"
    )


class Config(SoftPrompt):
    """FedPTuning's options; the prompt is as long as in FederatedScope-LLM, the encoder as wide as in PEFT's
    examples."""

    hidden_size: Annotated[int, Field(ge=1, le=MAX_WIDTH)] | Literal["model"] = Field(
        default=128, description="Width of the prompt encoder e; model: the model's width, as published"
    )
    local: Adam = Field(default=Adam(), description=LOCAL)

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, dense=True, comparable=True, decodable=True, adapts=True, own_shapes=True)
