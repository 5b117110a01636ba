"""FFA-LoRA's options and contributions: the update of the adapters' second factors."""

from __future__ import annotations

from pydantic import Field

from ferret_core.algorithms.configs._base import Adam, LowRank
from ferret_core.algorithms.configs._traits import Traits
from ferret_core.training.config import LOCAL


class Config(LowRank):
    """FFA-LoRA's options; rank, targets and Adam are FedIT's, so that the two can be compared."""

    local: Adam = Field(default=Adam(), description=LOCAL)

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, dense=True, comparable=True, decodable=True, adapts=True, own_shapes=True)
