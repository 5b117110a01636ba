"""FedIT's options, and what its participants send: the update of their adapters."""

from __future__ import annotations

from pydantic import Field

from ferret_core.algorithms.configs._base import LowRank
from ferret_core.protocol.limits import MAX_REAL
from ferret_core.training.config import LOCAL, LocalConfig


class Adam(LocalConfig):
    """Local Adam, at the authors' rate."""

    learning_rate: float = Field(
        default=3e-4, gt=0, le=MAX_REAL, description="Local learning rate η, constant over the steps"
    )


class Config(LowRank):
    """FedIT's options: rank 8 on queries and values; the authors' own code has rank 16, on queries alone."""

    local: Adam = Field(default=Adam(), description=LOCAL)
