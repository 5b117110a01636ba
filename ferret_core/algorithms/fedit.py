"""FedIT: participants tune low-rank adapters on instructions and the server averages the factors.

Zhang et al., "Towards Building the Federated GPT: Federated Instruction Tuning", ICASSP 2024,
https://arxiv.org/abs/2305.05644, with the adapters of Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models",
ICLR 2022, https://arxiv.org/abs/2106.09685. Sends 4·r·(fan_in + fan_out) bytes per adapted layer.

    W is frozen; B ← 0, A ← random, from the experiment's seed; layers compute W x + (α/r) B A x
    for each round r:
        for each participant i in parallel:
            (A, B)ᵢ ← (A, B); T steps of Adam on (A, B)ᵢ
            send Δᵢ = (A, B) − (A, B)ᵢ
        (A, B) ← (A, B) − a · Σᵢ nᵢ Δᵢ / Σᵢ nᵢ          (nᵢ: i's examples, or 1)

The product of the mean factors is not the mean of the products: the authors' choice, kept here.

The preset ``fedit_sgd`` is FedIT-SGD, a baseline of Qin et al., ICML 2024, https://arxiv.org/abs/2312.06353, and of the
Ferret paper: plain gradient descent keeps no moments, only one gradient in addition to the adapters.
"""

from __future__ import annotations

from typing import final

from torch import nn

from ferret_core.algorithms._adapters import AveragedAdapters, with_low_rank
from ferret_core.algorithms.configs.fedit import Config


@final
class Algorithm(AveragedAdapters):
    """Averages LoRA's factors."""

    config: Config

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        return with_low_rank(model, self.config, seed)
