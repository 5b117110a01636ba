"""The server's optimizer: how a round's update Δ moves the global model, the same for every algorithm.

FedAvgM: Hsu et al., "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification",
2019, https://arxiv.org/abs/1909.06335. FedAdam and FedYogi: Reddi et al., "Adaptive Federated
Optimization", ICLR 2021, https://arxiv.org/abs/2003.00295, Algorithm 2.

    for each round r, with Δ what the algorithm would move the model by at rate 1:
        sgd:   m ← β m + Δ                       w ← w − a_r m
        adam:  m ← β₁ m + (1 − β₁) Δ;  v ← β₂ v + (1 − β₂) Δ²                       w ← w − a_r m / (√v + τ)
        yogi:  m as in adam;           v ← v − (1 − β₂) Δ² sign(v − Δ²)             w ← w − a_r m / (√v + τ)

Without momentum, sgd leaves the move to the algorithm, which never holds Δ whole. With it, and with the others, every
replica keeps one or two fp32 tensors for each parameter. They start at 0 and follow from the ledger alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from ferret_core.algorithms.base import FederatedAlgorithm, State
from ferret_core.models.parameters import trainable, working_copy
from ferret_core.projection.apply import reconstruct_
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import blocks_of
from ferret_core.projection.project import Projected
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.spec import ServerSpec
from ferret_core.protocol.wire import Arrays
from ferret_core.server.norm_clipping import MEDIAN_OF, lower_median
from ferret_core.server.schedule import server_rate

Tensors = dict[str, torch.Tensor]
Moments = tuple[Tensors, Tensors]


class ServerOptimizer:
    """One experiment's optimizer over ``rounds`` rounds, with its moments."""

    def __init__(self, spec: ServerSpec, rounds: int) -> None:
        self.spec = spec
        self.rounds = rounds
        self._mean: Tensors = {}
        self._square: Tensors = {}

    def weights(self, examples: Sequence[int], cap: float) -> list[float]:
        """Returns each contribution's weight in the mean: its number of examples, up to ``cap`` times their median."""
        if self.spec.weights == "equal":
            return [1.0] * len(examples)
        most = cap * lower_median(np.array(examples, np.float64)) if len(examples) >= MEDIAN_OF else math.inf
        return [float(min(count, most)) for count in examples]

    def rate(self, round_number: int) -> float:
        return server_rate(self.spec, round_number, self.rounds)

    def moments(self) -> Moments:
        """Returns copies of the state that the next step builds on, for :meth:`restore`."""
        return _copied(self._mean), _copied(self._square)

    def restore(self, moments: Moments) -> None:
        mean, square = moments
        self._mean, self._square = _copied(mean), _copied(square)

    def step(
        self,
        algorithm: FederatedAlgorithm,
        model: nn.Module,
        state: State,
        result: Arrays,
        round_number: int,
        part: float = 1.0,
    ) -> State:
        """Moves ``model`` in place by the step guard's ``part`` of ``result``. Returns the algorithm's next state."""
        rate = part * self.rate(round_number)
        if self.spec.optimizer == "sgd" and not self.spec.momentum:
            return algorithm.apply_update(model, state, result, rate)
        state, update = displacement(algorithm, model, state, result)
        # Each part of Δ is freed when its step is there, so that the model has room for one of them only.
        steps = [rate * self._direction(name, update.pop(name)).reshape(-1) for name in list(update)]
        parameters = trainable(model)
        # Half precision is rounded with a separate seed, because the algorithm has used up the round's.
        seed = derive_seed("server", round_number)
        reconstruct_(parameters, blocks_of(parameters), basis("I"), [Projected(0, steps)], seed)
        return state

    @torch.no_grad()
    def _direction(self, name: str, delta: torch.Tensor) -> torch.Tensor:
        """Returns the update of one parameter after momentum or scaling; its moments are updated."""
        spec = self.spec
        mean = self._mean.setdefault(name, torch.zeros_like(delta))
        if spec.optimizer == "sgd":
            mean.mul_(spec.momentum).add_(delta)
            return mean
        square = self._square.setdefault(name, torch.zeros_like(delta))
        mean.mul_(spec.beta1).add_(delta, alpha=1 - spec.beta1)
        if spec.optimizer == "adam":
            square.mul_(spec.beta2).addcmul_(delta, delta, value=1 - spec.beta2)
        else:
            square.sub_((1 - spec.beta2) * delta.square() * torch.sign(square - delta.square()))
        return mean / (square.sqrt() + spec.tau)


def displacement(
    algorithm: FederatedAlgorithm, model: nn.Module, state: State, result: Arrays
) -> tuple[State, Tensors]:
    """Returns Δ, the change that ``result`` would subtract from each parameter at rate 1, fp32, and the algorithm's
    state after it; the model stays unchanged.
    """
    with working_copy(model) as before:
        state = algorithm.apply_update(model, state, result, 1.0)
        moved = {name: end.data for name, end in trainable(model).items()}
        # Δ takes the place of the moved copy.
        return state, {name: torch.sub(before[name].to(end.device), end, out=end) for name, end in moved.items()}


def _copied(tensors: Tensors) -> Tensors:
    return {name: tensor.clone() for name, tensor in tensors.items()}
