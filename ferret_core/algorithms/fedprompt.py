"""FedPrompt: participants tune a soft prompt in front of every sequence and the server averages it.

Zhao et al., "FedPrompt: Communication-Efficient and Privacy Preserving Prompt Tuning in Federated Learning", ICASSP
2023, https://arxiv.org/abs/2208.12268, with the soft prompts of Lester et al., "The Power of Scale for
Parameter-Efficient Prompt Tuning", EMNLP 2021, https://arxiv.org/abs/2104.08691, initialised uniformly in ±½ as there.
Sends 4·m·h bytes for m virtual tokens and a model of width h.

    W is frozen; P ← random (m, h), from the experiment's seed; a sequence of embeddings X becomes [P, X]
    for each round r:
        for each participant i in parallel:
            Pᵢ ← P; T steps of a first-order optimizer on Pᵢ
            send Δᵢ = P − Pᵢ
        P ← P − a · Σᵢ nᵢ Δᵢ / Σᵢ nᵢ          (nᵢ: i's examples, or 1)

The prompt takes m of the model's positions: sequences are cut to the rest.
"""

from __future__ import annotations

from typing import final

from torch import nn

from ferret_core.algorithms._adapters import AveragedAdapters, with_soft_prompt
from ferret_core.algorithms.configs.fedprompt import Config


@final
class Algorithm(AveragedAdapters):
    """Averages a soft prompt."""

    config: Config

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        return with_soft_prompt(model, self.config.virtual_tokens, seed)
