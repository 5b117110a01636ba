"""FedAvg's options, and what its participants send: their update."""

from __future__ import annotations

from ferret_core.algorithms.configs._base import SendsUpdate
from ferret_core.training.config import LocalConfig


class Config(SendsUpdate):
    """FedAvg's options."""

    local: LocalConfig = LocalConfig()
