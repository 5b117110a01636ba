"""DiLoCo: long local training with AdamW, and Nesterov momentum over the rounds.

Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models", 2023,
https://arxiv.org/abs/2311.08105. With ``local.optimizer = "muon"`` it is MuLoCo: Thérien et al., "MuLoCo: Muon is a
practical inner optimizer for DiLoCo", 2025, https://arxiv.org/abs/2505.23725.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of AdamW on wᵢ
            send Δᵢ = w − wᵢ, the pseudo-gradient
        Δ ← Σᵢ nᵢ Δᵢ / Σᵢ nᵢ                      (nᵢ: i's examples, or 1)
        m ← β m + Δ;  w ← w − a (Δ + β m)

The last line is the server's optimizer, for every algorithm. The authors' a = 0.7 and β = 0.9 are

    [server]
    learning_rate = 0.7
    momentum = 0.9
    nesterov = true

Without them this is FedAvg with AdamW.

Differences from the papers: Their T is 500, MuLoCo's 30; here the specification sets it. AdamW and Muon start every
round without moments, which the papers keep on each machine. MuLoCo's two-bit encoding with error feedback is not
implemented.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import torch
from torch import nn

from ferret_core.algorithms._dense import AveragedUpdates, average_of, dense_update, rounding_of
from ferret_core.algorithms.base import Client, LocalUpdate, State, Weighted
from ferret_core.algorithms.configs.diloco import Config
from ferret_core.models.parameters import shapes
from ferret_core.models.shapes import Shapes, sizes
from ferret_core.projection import quantize
from ferret_core.protocol.wire import Array, Arrays, Contribution


class Algorithm(AveragedUpdates):
    """Averages quantised dense updates."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Returns each tensor's number of elements, uint64."""
        return {"lengths": np.array(list(sizes(shapes(model)).values()), np.uint64)}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        with client.working_copy(model, self.config.local) as before:
            trained = client.train(model, self.config.local)
            update = torch.from_numpy(client.protected(dense_update(before, model)))
        parts = update.split(state["lengths"].tolist())
        return LocalUpdate(quantize.quantize(parts, self.config.coordinates, client.task.seed), trained.metrics)

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        return average_of(contributions, partial(self._update_of, state))

    def coordinates(self, state: State, contribution: Contribution) -> Arrays:
        return {"update": self._update_of(state, contribution)}

    def centred(self, first: Contribution, centre: Arrays, count: int) -> Arrays:
        return {**centre, "rounding": rounding_of(first)}

    def decoded(self, state: State, contribution: Contribution, shapes: Shapes) -> Array:
        return self._update_of(state, contribution)

    def _update_of(self, state: State, received: Contribution) -> Array:
        return np.concatenate(self.config.tensors(received.arrays, state["lengths"].tolist()))
