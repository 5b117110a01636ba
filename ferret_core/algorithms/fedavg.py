"""FedAvg: participants train locally and the server averages their whole updates.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017,
https://arxiv.org/abs/1602.05629. The yardstick: 4·d bytes per participant and round.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ
            send Δᵢ = w − wᵢ
        w ← w − a · Σᵢ nᵢ Δᵢ / Σᵢ nᵢ          (nᵢ: i's examples, or 1)
"""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

from ferret_core.algorithms._base import Client, LocalUpdate, State, Weighted, local_update
from ferret_core.algorithms._dense import apply_dense, average, check_dense, dense_update
from ferret_core.models.parameters import Shapes, working_copy
from ferret_core.protocol.spec import RoundTask, Strict
from ferret_core.protocol.wire import Arrays, Contribution
from ferret_core.training.local import LocalConfig


class Config(Strict):
    """FedAvg's options."""

    local: LocalConfig = LocalConfig()


class Algorithm:
    """Dense updates, averaged."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def prepare(self, model: nn.Module, seed: int) -> nn.Module:
        return model

    def init_state(self, model: nn.Module, seed: int) -> State:
        return {}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        with working_copy(model) as before:
            trained = client.train(model, self.config.local)
            update = dense_update(before, model)
        return local_update(client, "fedavg", {"update": update}, metrics=trained.metrics)

    def check(self, contribution: Contribution, task: RoundTask, shapes: Shapes) -> None:
        check_dense(contribution, shapes)

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        return average(contributions)

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        apply_dense(model, result["update"], rate, int(result["rounding"][0]))
        return state
