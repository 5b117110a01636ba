"""FedIT's options, and what its participants send: the update of their adapters."""

from __future__ import annotations

from pydantic import Field

from ferret_core.algorithms.configs._base import Adam, LowRank
from ferret_core.training.config import LOCAL


class Config(LowRank):
    """FedIT's options: rank 8 on queries and values; the authors' own code has rank 16, on queries alone."""

    local: Adam = Field(default=Adam(), description=LOCAL)
