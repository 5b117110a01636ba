"""FedIT-SGD: FedIT with plain gradient descent in place of Adam, a preset of ``fedit``.

A baseline of Qin et al., "Federated Full-Parameter Tuning of Billion-Sized Language Models with Communication Cost
under 18 Kilobytes", ICML 2024, https://arxiv.org/abs/2312.06353, and of the Ferret paper. It keeps no moments: local
training needs one gradient of the adapters beside them. The bytes are FedIT's.

    W stays; B ← 0, A ← random, from the experiment's seed; layers compute W x + (α/r) B A x
    for each round r:
        for each participant i in parallel:
            (A, B)ᵢ ← (A, B); T steps of gradient descent on (A, B)ᵢ
            send Δᵢ = (A, B) − (A, B)ᵢ
        (A, B) ← (A, B) − a · Σᵢ nᵢ Δᵢ / Σᵢ nᵢ          (nᵢ: i's examples, or 1)
"""

from __future__ import annotations

from typing import final

from pydantic import Field
from torch import nn

from ferret_core.algorithms._adapters import AveragedAdapters, LowRank, with_low_rank
from ferret_core.training.local import LocalConfig
from ferret_core.training.optimizers import OptimizerName


class Sgd(LocalConfig):
    """Local gradient descent; it takes a larger rate than Adam."""

    optimizer: OptimizerName = Field(default="sgd", description="First-order method: one of torch.optim")
    learning_rate: float = Field(default=1e-2, gt=0, description="Local learning rate η, constant over the steps")


class Config(LowRank):
    """FedIT-SGD's options."""

    local: Sgd = Sgd()


@final
class Algorithm(AveragedAdapters):
    """LoRA's factors, averaged."""

    def __init__(self, config: Config) -> None:
        super().__init__("fedit_sgd", config.local)
        self.config = config

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        return with_low_rank(model, self.config, seed)
