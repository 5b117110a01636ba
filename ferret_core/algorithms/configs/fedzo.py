"""FedZO's options, and what its participants send: their update."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from ferret_core.algorithms.configs._base import SendsUpdate
from ferret_core.training.config import LOCAL, ZerothOrderConfig


class Config(SendsUpdate):
    """FedZO's options: b₁ is ``local.steps``, b₂ is ``local.perturbations``."""

    shardable: ClassVar[Literal[True]] = True

    local: ZerothOrderConfig = Field(default=ZerothOrderConfig(), description=LOCAL)
