"""FedZO's options, and what its participants send: their update."""

from __future__ import annotations

from ferret_core.algorithms.configs._base import SendsUpdate
from ferret_core.training.config import ZerothOrderConfig


class Config(SendsUpdate):
    """FedZO's options: b₁ is ``local.steps``, b₂ is ``local.perturbations``."""

    local: ZerothOrderConfig = ZerothOrderConfig()
