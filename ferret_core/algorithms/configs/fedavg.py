"""FedAvg's options and contributions: the update."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from ferret_core.algorithms.configs._base import SendsUpdate
from ferret_core.training.config import LOCAL, LocalConfig


class Config(SendsUpdate):
    """FedAvg's options."""

    shardable: ClassVar[Literal[True]] = True

    local: LocalConfig = Field(default=LocalConfig(), description=LOCAL)
