"""FedKSeed: zeroth-order steps along K directions that all participants know; only slopes are sent.

Qin et al., "Federated Full-Parameter Tuning of Billion-Sized Language Models with Communication Cost under 18
Kilobytes", ICML 2024, https://arxiv.org/abs/2312.06353, Algorithm 1.

    K candidate seeds s_k of the experiment
    for each round r:
        for each participant i in parallel:
            wᵢ ← w; for each of T steps, on a batch, with a uniformly drawn candidate k:
                ĝ ← (ℓ(wᵢ + εz(s_k)) − ℓ(wᵢ − εz(s_k))) / 2ε
                wᵢ ← wᵢ − η ĝ z(s_k)
            send the T slopes ĝ
        ḡ_k ← Σᵢ nᵢ · (sum of i's slopes along k) / Σᵢ nᵢ          (nᵢ: i's examples, or 1)
        w ← w − a · η Σ_k ḡ_k z(s_k)

Differences from the paper: Qin et al. send each slope's seed with it. In every round they rebuild w from the first
model, with slopes accumulated over all rounds. Here the draw follows from the task's seed, so that only 4·T bytes
travel up. Each replica adds a round's steps to its model, which gives the same w. Participants step on one fp32 copy of
the weights. Their code draws z from a normal distribution; here its entries are ±1, of the same variance.

The preset ``fedkseed_pro`` is FedKSeed-Pro, of the same paper. With ``sampling = "importance"`` candidates are drawn by
p_k. Each has a history G_k, which starts as {0} and collects every ĝ of a round:

    φ_k ← mean of |ĝ|, cut at a clip, over G_k;  p_k ← softmax of φ scaled to 0 … 1

A steep direction is thus drawn at most e times as often as a flat one. Down travels also what the histories gain.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from torch import nn

from ferret_core.algorithms._base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.algorithms._seed_pool import (
    candidates,
    gather,
    history,
    look_along,
    odds,
    packed,
    remember,
    step_along,
)
from ferret_core.algorithms.configs.fedkseed import Config
from ferret_core.protocol.wire import Array, Arrays


class Algorithm(FullModelMixin):
    """Adds up slopes along shared directions, by seed."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.remembers = config.sampling == "importance"

    def init_state(self, model: nn.Module, seed: int) -> State:
        K = self.config.K
        return {"candidates": candidates(seed, K), **(history(K) if self.remembers else {})}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        return look_along(model, state, client, self.config.local, self._odds(state))

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        gathered = gather(self._odds(state), contributions, self.config.clip)
        if not self.remembers:
            return packed(gathered)
        drawn = gathered.counts > 0
        return {**packed(gathered), "magnitudes": gathered.magnitudes[drawn], "counts": gathered.counts[drawn]}

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        local = self.config.local
        step_along(model, state, result, rate * local.learning_rate / local.perturbations)
        return {**state, **remember(state, result)} if self.remembers else state

    def _odds(self, state: State) -> Array:
        return odds(state) if self.remembers else np.ones(self.config.K, dtype=np.int64)
