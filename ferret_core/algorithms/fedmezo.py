"""FedMeZO: FedAvg over MeZO, which tunes a language model in the memory that running it takes.

Malladi et al., "Fine-Tuning Language Models with Just Forward Passes", NeurIPS 2023, https://arxiv.org/abs/2305.17333,
Algorithm 1, between the rounds of FedAvg: the baseline of Qin et al., ICML 2024, and of Shu et al., ICML 2025.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; for each of T steps, on a batch, with a fresh seed s:
                wᵢ ← wᵢ + εz(s);  ℓ₊ ← ℓ(wᵢ);  wᵢ ← wᵢ − 2εz(s);  ℓ₋ ← ℓ(wᵢ);  wᵢ ← wᵢ + εz(s)
                wᵢ ← wᵢ − η · (ℓ₊ − ℓ₋) / 2ε · z(s)
            send Δᵢ = w − wᵢ
        w ← w − a · Σᵢ nᵢ Δᵢ / Σᵢ nᵢ          (nᵢ: i's examples, or 1)

MeZO walks on the model itself. Here it walks on a copy in fp32, for the difference Δᵢ and because adding and taking
away εz leaves rounding behind: the peak is two copies of the weights and one forward pass.
"""

from __future__ import annotations

from ferret_core.algorithms._dense import AveragedDescents
from ferret_core.algorithms.configs.fedmezo import Config


class Algorithm(AveragedDescents):
    """Dense updates from forward passes, averaged."""

    config: Config
