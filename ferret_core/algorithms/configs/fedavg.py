"""FedAvg's options, and what its participants send: their update."""

from __future__ import annotations

from pydantic import Field

from ferret_core.algorithms.configs._base import SendsUpdate
from ferret_core.training.config import LOCAL, LocalConfig


class Config(SendsUpdate):
    """FedAvg's options."""

    local: LocalConfig = Field(default=LocalConfig(), description=LOCAL)
