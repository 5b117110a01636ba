"""FedMeZO's options, and what its participants send: their update."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from ferret_core.algorithms.configs._base import SendsUpdate
from ferret_core.protocol.limits import MAX_REAL
from ferret_core.training.config import LOCAL, ZerothOrderConfig


class MezoConfig(ZerothOrderConfig):
    """MeZO's steps: ε and the rate that its paper found best for most of its tasks."""

    learning_rate: float = Field(
        default=1e-6, gt=0, le=MAX_REAL, description="Local learning rate η, constant over the steps"
    )
    epsilon: float = Field(
        default=1e-3, gt=0, le=MAX_REAL, description="Distance ε that each weight is moved to measure the loss"
    )


class Config(SendsUpdate):
    """FedMeZO's options."""

    shardable: ClassVar[Literal[True]] = True

    local: MezoConfig = Field(default=MezoConfig(), description=LOCAL)
