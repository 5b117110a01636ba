"""FedKSeed-Pro: FedKSeed that draws more often the directions along which the loss was steep.

Qin et al., "Federated Full-Parameter Tuning of Billion-Sized Language Models with Communication Cost under 18
Kilobytes", ICML 2024, https://arxiv.org/abs/2312.06353.

    K candidate seeds s_k of the experiment, each with a history G_k = {0}
    for each round r:
        φ_k ← mean of |ĝ|, cut at a clip, over G_k;  p_k ← softmax of φ scaled to 0 … 1
        for each participant i in parallel:
            as FedKSeed's, but with candidates drawn by p
        w as FedKSeed's; every ĝ of the round joins its G_k

A steep direction is thus drawn at most e times as often as a flat one. Down travels also what the histories gain.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from torch import nn

from ferret_core.algorithms._base import Client, LocalUpdate, State, Weighted, WholeModel
from ferret_core.algorithms._seed_pool import (
    candidates,
    drawn_in,
    gather,
    look_along,
    packed,
    step_along,
)
from ferret_core.algorithms.configs.fedkseed_pro import Config
from ferret_core.protocol.wire import Array, Arrays

SCALE = 2.0**40


TERMS = 18


"""Of the exponential series: those left out are below the rounding of fp64 for exponents up to 1."""


class Algorithm(WholeModel):
    """Slopes along shared directions, the steep ones drawn more often."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        """The candidates; Σ|ĝ| of their histories, fp32 (K,), and how many ĝ these hold, int32 (K,), the 0 too."""
        K = self.config.K
        return {
            "candidates": candidates(seed, K),
            "magnitudes": np.zeros(K, dtype=np.float32),
            "counts": np.ones(K, dtype=np.int32),
        }

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        return look_along(model, state, client, self.config.local, odds(state))

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        gathered = gather(odds(state), contributions, self.config.clip)
        drawn = gathered.counts > 0
        history = {"magnitudes": gathered.magnitudes[drawn], "counts": gathered.counts[drawn]}
        return {**packed(gathered), **history}

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        local = self.config.local
        step_along(model, state, result, rate * local.learning_rate / local.perturbations)
        magnitudes, counts, drawn = state["magnitudes"].copy(), state["counts"].copy(), drawn_in(result, self.config.K)
        magnitudes[drawn] += result["magnitudes"]
        counts[drawn] += result["counts"]
        return {**state, "magnitudes": magnitudes, "counts": counts}


def odds(state: State) -> Array:
    """int64 (K,): the candidates' probabilities times one number, rounded down."""
    means = state["magnitudes"].astype(np.float64) / state["counts"]
    above = means - means.min()
    return np.floor(_exp(above / (above.max() or 1.0)) * SCALE).astype(np.int64)


def _exp(x: Array) -> Array:
    """eˣ for x from 0 to 1 by + × ÷ alone: the same bits on every machine, which no library's own exp promises."""
    total = np.ones_like(x)
    for n in range(TERMS, 0, -1):
        total = 1 + total * x / n
    return total
