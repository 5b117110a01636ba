"""FedAvg: participants train locally and the server averages their whole updates.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017,
https://arxiv.org/abs/1602.05629. The baseline: 4·d bytes per participant and round.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ
            send Δᵢ = w − wᵢ
        w ← w − a · Σᵢ nᵢ Δᵢ / Σᵢ nᵢ          (nᵢ: i's examples, or 1)
"""

from __future__ import annotations

from torch import nn

from ferret_core.algorithms._dense import AveragedUpdates, trained_update
from ferret_core.algorithms.base import Client, LocalUpdate, State
from ferret_core.algorithms.configs.fedavg import Config


class Algorithm(AveragedUpdates):
    """Averages dense updates."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        trained = trained_update(model, client, self.config.local)
        update = client.protected(trained.vector)
        return LocalUpdate({"update": update}, trained.metrics)
