"""FFA-LoRA: one of LoRA's factors keeps its random initial value, so that the mean of the others is the adapters' mean.

Sun et al., "Improving LoRA in Privacy-preserving Federated Learning", ICLR 2024, https://arxiv.org/abs/2403.12313.
Sends 4·r·fan_out bytes per adapted layer, about half as much as FedIT.

    W and A are frozen; B ← 0, A ← random, from the experiment's seed; layers compute W x + (α/r) B A x
    for each round r:
        for each participant i in parallel:
            Bᵢ ← B; T steps of Adam on Bᵢ
            send Δᵢ = B − Bᵢ
        B ← B − a · Σᵢ nᵢ Δᵢ / Σᵢ nᵢ          (nᵢ: i's examples, or 1)

Differences from the paper: Its participants make one pass over their data and train with SGD under differential
privacy; here the specification sets the optimizer.
"""

from __future__ import annotations

from typing import final

from torch import nn

from ferret_core.algorithms._adapters import AveragedAdapters, with_low_rank
from ferret_core.algorithms.configs.ffa_lora import Config


@final
class Algorithm(AveragedAdapters):
    """Averages LoRA's second factors; the first are frozen."""

    config: Config

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        adapted = with_low_rank(model, self.config, seed)
        for name, parameter in adapted.named_parameters():
            if ".lora_A." in name:
                parameter.requires_grad_(False)
        return adapted
