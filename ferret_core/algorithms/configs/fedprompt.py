"""FedPrompt's options and contributions: the update of the prompt."""

from __future__ import annotations

from pydantic import Field

from ferret_core.algorithms.configs.base import SoftPrompt
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.protocol.limits import MAX_REAL
from ferret_core.training.config import LOCAL, LocalConfig


class Adam(LocalConfig):
    """Local Adam; a prompt needs a larger learning rate than weights."""

    learning_rate: float = Field(
        default=3e-2, gt=0, le=MAX_REAL, description="Local learning rate η, constant over the steps"
    )


class Config(SoftPrompt):
    """FedPrompt's options; the prompt is as long as in FederatedScope-LLM."""

    local: Adam = Field(default=Adam(), description=LOCAL)

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, dense=True, comparable=True, decodable=True, adapts=True, own_shapes=True)
