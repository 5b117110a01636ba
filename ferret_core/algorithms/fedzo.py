"""FedZO: FedAvg with zeroth-order training: participants know only the loss, not its gradient.

Fang et al., "Communication-Efficient Stochastic Zeroth-Order Optimization for Federated Learning", IEEE Transactions on
Signal Processing 70, 2022, https://arxiv.org/abs/2201.09531, Algorithm 1. Sends as much as FedAvg: 4·d bytes.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; for each of b₁ steps, on a batch:
                ĝ_j ← (ℓ(wᵢ + εz_j) − ℓ(wᵢ − εz_j)) / 2ε for b₂ directions z_j
                wᵢ ← wᵢ − η · Σ_j ĝ_j z_j / b₂
            send Δᵢ = w − wᵢ
        w ← w − a · Σᵢ nᵢ Δᵢ / Σᵢ nᵢ          (nᵢ: i's examples, or 1)

Differences from the paper: Fang et al. take the forward difference from w along directions uniform on the unit sphere,
with radius μ. Here the difference is central, which costs the same for b₂ = 1 and has an error of ε² instead of ε. The
directions are random signs, on the sphere of radius √d, so their μ is ε√d.

The preset ``fedmezo`` is FedMeZO, a baseline of Qin et al., ICML 2024, and of Shu et al., ICML 2025. It is MeZO between
the rounds of FedAvg: Malladi et al., "Fine-Tuning Language Models with Just Forward Passes", NeurIPS 2023,
https://arxiv.org/abs/2305.17333, Algorithm 1. MeZO steps on the model itself. Here it steps on an fp32 copy, for the
difference Δᵢ and because adding and subtracting εz leaves rounding errors. The memory peak is two copies of the weights
and one forward pass.
"""

from __future__ import annotations

from ferret_core.algorithms._dense import AveragedDescents
from ferret_core.algorithms.configs.fedzo import Config


class Algorithm(AveragedDescents):
    """Averages dense updates from forward passes."""

    config: Config
