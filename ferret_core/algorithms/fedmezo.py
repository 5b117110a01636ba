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

from pydantic import Field
from torch import nn

from ferret_core.algorithms._base import Client, LocalUpdate, State, local_update
from ferret_core.algorithms._dense import AveragedUpdates, dense_update
from ferret_core.models.parameters import working_copy
from ferret_core.protocol.spec import Strict
from ferret_core.training.zeroth_order import ZerothOrderConfig


class MezoConfig(ZerothOrderConfig):
    """MeZO's steps: ε and the rate that its paper found best for most of its tasks."""

    learning_rate: float = Field(default=1e-6, gt=0, description="Local learning rate η, constant over the steps")
    epsilon: float = Field(default=1e-3, gt=0, description="How far ε each weight is moved to look at the loss")


class Config(Strict):
    """FedMeZO's options."""

    local: MezoConfig = MezoConfig()


class Algorithm(AveragedUpdates):
    """Dense updates from forward passes, averaged."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        with working_copy(model) as before:
            trained = client.descend(model, self.config.local)
            update = dense_update(before, model)
        return local_update(client, "fedmezo", {"update": update}, metrics=trained.metrics)
