"""FedProx: FedAvg whose participants are held back from drifting away from the global model.

Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, https://arxiv.org/abs/1812.06127,
Algorithm 2.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on Fᵢ(wᵢ) + μ/2 ‖wᵢ − w‖²
            send Δᵢ = w − wᵢ
        w ← w − a · Σᵢ nᵢ Δᵢ / Σᵢ nᵢ          (nᵢ: i's examples, or 1)

Where paper and this differ: all participants do the same number of steps, where the paper lets slow ones do fewer; the
reported train_loss is Fᵢ's, without the proximal term.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self

import torch
from pydantic import Field, model_validator
from torch import nn

from ferret_core.algorithms._base import Client, LocalUpdate, State, local_update
from ferret_core.algorithms._dense import AveragedUpdates, dense_update
from ferret_core.models.parameters import trainable, working_copy
from ferret_core.protocol.spec import Strict
from ferret_core.training.local import LocalConfig


class Config(Strict):
    """FedProx's options."""

    mu: float = Field(default=0.01, ge=0, description="Weight μ of the proximal term μ/2 ‖w − w₀‖²; at 0 it is FedAvg")
    local: LocalConfig = LocalConfig()

    @model_validator(mode="after")
    def _whole_gradients(self) -> Self:
        if self.local.in_backward:
            raise ValueError("local.in_backward = True holds no gradient that the proximal term could be added to")
        return self


class Algorithm(AveragedUpdates):
    """Dense updates of a proximal objective, averaged."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        with working_copy(model) as before:
            trained = client.train(model, self.config.local, correct=proximal(model, before, self.config.mu))
            update = dense_update(before, model)
        return local_update(client, "fedprox", {"update": update}, metrics=trained.metrics)


def proximal(model: nn.Module, before: Mapping[str, torch.Tensor], mu: float) -> Callable[[], None]:
    """Adds μ (w − w₀), the proximal term's gradient, to the gradients of ``model``, which started at ``before``."""
    pairs = [(parameter, before[name]) for name, parameter in trainable(model).items()]

    def correct() -> None:
        for parameter, start in pairs:
            if parameter.grad is not None:
                parameter.grad.add_(parameter.detach() - start.to(parameter.device), alpha=mu)

    return correct
