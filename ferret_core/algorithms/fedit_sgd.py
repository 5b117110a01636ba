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

from torch import nn

from ferret_core.algorithms._adapters import AveragedAdapters, with_low_rank
from ferret_core.algorithms.configs.fedit_sgd import Config


@final
class Algorithm(AveragedAdapters):
    """LoRA's factors, averaged."""

    config: Config

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        return with_low_rank(model, self.config, seed)
