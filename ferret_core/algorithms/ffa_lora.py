"""FFA-LoRA: one of LoRA's factors stays as it was drawn, so that the mean of the others is the adapters' mean.

Sun et al., "Improving LoRA in Privacy-preserving Federated Learning", ICLR 2024, https://arxiv.org/abs/2403.12313.
Sends 4·r·fan_out bytes for every adapted layer, about half of what FedIT sends.

    W and A stay; B ← 0, A ← random, from the experiment's seed; layers compute W x + (α/r) B A x
    for each round r:
        for each participant i in parallel:
            Bᵢ ← B; T steps of Adam on Bᵢ
            send Δᵢ = B − Bᵢ
        B ← B − a · Σᵢ nᵢ Δᵢ / Σᵢ nᵢ          (nᵢ: i's examples, or 1)

Where the paper and this differ: the paper's participants make one pass over their data and train with SGD under
differential privacy; here the optimizer is the specification's.
"""

from __future__ import annotations

from typing import final

from torch import nn

from ferret_core.algorithms._adapters import AveragedAdapters, with_low_rank
from ferret_core.algorithms.configs.ffa_lora import Config


@final
class Algorithm(AveragedAdapters):
    """LoRA's second factors, averaged; the first are frozen."""

    config: Config

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        adapted = with_low_rank(model, self.config, seed)
        for name, parameter in adapted.named_parameters():
            if ".lora_A." in name:
                parameter.requires_grad_(False)
        return adapted
