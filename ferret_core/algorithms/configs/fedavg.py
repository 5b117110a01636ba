"""FedAvg's options and contributions: the update."""

from __future__ import annotations

from pydantic import Field

from ferret_core.algorithms.configs.base import SendsUpdate
from ferret_core.algorithms.configs.traits import Traits
from ferret_core.training.config import LOCAL, LocalConfig


class Config(SendsUpdate):
    """FedAvg's options."""

    local: LocalConfig = Field(default=LocalConfig(), description=LOCAL)

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, dense=True, comparable=True, decodable=True, shardable=True)
