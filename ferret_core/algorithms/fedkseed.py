"""FedKSeed: zeroth-order steps along K directions that all participants know; only slopes travel.

Qin et al., "Federated Full-Parameter Tuning of Billion-Sized Language Models with Communication Cost under 18
Kilobytes", ICML 2024, https://arxiv.org/abs/2312.06353, Algorithm 1.

    K candidate seeds s_k of the experiment
    for each round r:
        for each participant i in parallel:
            wᵢ ← w; for each of T steps, on a batch, with a candidate k drawn evenly:
                ĝ ← (ℓ(wᵢ + εz(s_k)) − ℓ(wᵢ − εz(s_k))) / 2ε
                wᵢ ← wᵢ − η ĝ z(s_k)
            send the T slopes ĝ
        ḡ_k ← Σᵢ nᵢ · (sum of i's slopes along k) / Σᵢ nᵢ          (nᵢ: i's examples, or 1)
        w ← w − a · η Σ_k ḡ_k z(s_k)

Qin et al. send each slope's seed with it and rebuild w from the first model in every round, by slopes accumulated over
all of them. Here the draw follows from the task's seed, so that 4·T bytes are all that travels up, and each replica
adds a round's steps to the model it has, which gives the same w. Participants walk on one fp32 copy of the weights.
Their code draws z from a normal distribution; here its entries are ±1, of the same variance.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from torch import nn

from ferret_core.algorithms._base import Client, LocalUpdate, State, Weighted, WholeModel
from ferret_core.algorithms._seed_pool import candidates, gather, look_along, packed, step_along
from ferret_core.algorithms.configs.fedkseed import Config
from ferret_core.protocol.wire import Arrays


class Algorithm(WholeModel):
    """Slopes along shared directions, added up by seed."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.odds = np.ones(config.K, dtype=np.int64)

    def init_state(self, model: nn.Module, seed: int) -> State:
        return {"candidates": candidates(seed, self.config.K)}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        return look_along(model, state, client, self.config.local, self.odds)

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        return packed(gather(self.odds, contributions))

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        local = self.config.local
        step_along(model, state, result, rate * local.learning_rate / local.perturbations)
        return state
