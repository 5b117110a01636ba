"""FedProx: FedAvg with a proximal term that keeps participants close to the global model.

Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, https://arxiv.org/abs/1812.06127, Algorithm
2.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on Fᵢ(wᵢ) + μ/2 ‖wᵢ − w‖²
            send Δᵢ = w − wᵢ
        w ← w − a · Σᵢ nᵢ Δᵢ / Σᵢ nᵢ          (nᵢ: i's examples, or 1)

Differences from the paper: All participants take the same number of steps; the paper lets slow ones take fewer. The
reported train_loss is Fᵢ, without the proximal term.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

from ferret_core.algorithms._dense import AveragedUpdates, dense_update
from ferret_core.algorithms.base import Client, LocalUpdate, State
from ferret_core.algorithms.configs.fedprox import Config
from ferret_core.models.parameters import trainable


class Algorithm(AveragedUpdates):
    """Averages dense updates of a proximal objective."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        with client.working_copy(model, self.config.local) as before:
            trained = client.train(model, self.config.local, correct=proximal(model, before, self.config.mu))
            update = client.protected(dense_update(before, model))
        return LocalUpdate({"update": update}, trained.metrics)


def proximal(model: nn.Module, before: Mapping[str, torch.Tensor], mu: float) -> Callable[[], None]:
    """Returns a function that adds μ (w − w₀), the proximal term's gradient, to the gradients of ``model``.

    ``before``: w₀, the parameters at the start.
    """
    pairs = [(parameter, before[name]) for name, parameter in trainable(model).items()]

    def correct() -> None:
        for parameter, start in pairs:
            if parameter.grad is not None:
                parameter.grad.add_(parameter.detach() - start.to(parameter.device), alpha=mu)

    return correct
