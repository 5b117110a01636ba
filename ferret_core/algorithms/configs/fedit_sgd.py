"""FedIT-SGD's options, and what its participants send: the update of their adapters."""

from __future__ import annotations

from pydantic import Field

from ferret_core.algorithms.configs._base import LowRank
from ferret_core.protocol.limits import MAX_REAL
from ferret_core.training.config import LOCAL, LocalConfig
from ferret_core.training.optimizer_options import OptimizerName


class Sgd(LocalConfig):
    """Local gradient descent; it takes a larger rate than Adam."""

    optimizer: OptimizerName = Field(default="sgd", description="First-order method: one of torch.optim")
    learning_rate: float = Field(
        default=1e-2, gt=0, le=MAX_REAL, description="Local learning rate η, constant over the steps"
    )


class Config(LowRank):
    """FedIT-SGD's options."""

    local: Sgd = Field(default=Sgd(), description=LOCAL)
