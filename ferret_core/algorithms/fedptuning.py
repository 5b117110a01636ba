"""FedPTuning: participants tune a soft prompt and the small network that computes it, and the server averages both.

Kuang et al., "FederatedScope-LLM: A Comprehensive Package for Fine-tuning Large Language Models in Federated Learning",
KDD 2024, https://arxiv.org/abs/2309.00363, with the prompt encoder of Liu et al., "GPT Understands, Too", AI Open 2023,
https://arxiv.org/abs/2103.10385: here, as in that package, a perceptron of three layers without the LSTM. Sends 4·(m·h
+ 2·h·e + e² + 2·e + h) bytes for m virtual tokens, a model of width h and an encoder of width e.

    W is frozen; E (m, h) and f: ℝʰ → ℝʰ ← random, from the experiment's seed; a sequence of embeddings X becomes [f(E),
    X]
    for each round r:
        for each participant i in parallel:
            (E, f)ᵢ ← (E, f); T steps of a first-order optimizer on (E, f)ᵢ
            send Δᵢ = (E, f) − (E, f)ᵢ
        (E, f) ← (E, f) − a · Σᵢ nᵢ Δᵢ / Σᵢ nᵢ          (nᵢ: i's examples, or 1)

The prompt takes m of the model's positions: sequences are cut to the rest. A checkpoint holds the computed f(E).
"""

from __future__ import annotations

from typing import final

from torch import nn

from ferret_core.algorithms._adapters import AveragedAdapters, with_prompt_encoder
from ferret_core.algorithms.configs.fedptuning import Config


@final
class Algorithm(AveragedAdapters):
    """Averages a soft prompt's encoder."""

    config: Config

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        width = None if self.config.hidden_size == "model" else self.config.hidden_size
        return with_prompt_encoder(model, self.config.virtual_tokens, width, seed)
