"""FFA-LoRA's options, and what its participants send: the update of their adapters' second factors."""

from __future__ import annotations

from pydantic import Field

from ferret_core.algorithms.configs._base import Adam, LowRank
from ferret_core.algorithms.configs._traits import Traits
from ferret_core.training.config import LOCAL


class Config(LowRank):
    """FFA-LoRA's options; rank, targets and Adam are FedIT's, for the two to be compared."""

    local: Adam = Field(default=Adam(), description=LOCAL)

    @property
    def traits(self) -> Traits:
        return Traits(first_order=self.local, dense=True, comparable=True, decodable=True, adapts=True, own_shapes=True)
