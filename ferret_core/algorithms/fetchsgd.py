"""FetchSGD: participants send count sketches of their updates, and the server finds the largest entries of the sum.

Rothchild et al., "FetchSGD: Communication-Efficient Federated Learning with Sketching", ICML 2020,
https://arxiv.org/abs/2007.07682, Algorithm 1. A sketch is linear: the server keeps momentum and error memory as
sketches, so that participants keep no state.

    u and e, tables of rows × columns, start at 0
    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ
            send Sᵢ = sketch(w − wᵢ)
        S = Σᵢ nᵢ Sᵢ / Σᵢ nᵢ                           (nᵢ: i's examples, or 1)
        u ← ρ u + S;  e ← e + a u
        Δ = the k entries of largest |estimate(e)|;  w ← w − Δ
        e ← 0 and u ← 0 in the cells that sketch(Δ) hits

The result is S alone: every replica keeps u and e, and finds the same Δ. It takes as many bytes down as a participant
sends up.

Differences from the paper: The paper sketches one gradient and decays the rate; here the sketch is of the move of T
local steps, at the server's learning rate a. Its Algorithm 1 subtracts sketch(Δ) from e and leaves u. According to the
authors' code the model then diverges, which we confirmed; their code does as above. ρ is applied in addition to any
momentum of ``[server]``: set only one of the two. Columns and k default to the authors' code: 500,000 and 50,000 for
its 6.6 million parameters.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from torch import nn

from ferret_core.algorithms._dense import apply_dense, average, trained_update
from ferret_core.algorithms._sparsify import largest, scattered
from ferret_core.algorithms.base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.algorithms.configs.fetchsgd import Config
from ferret_core.models.parameters import shapes
from ferret_core.models.shapes import count
from ferret_core.projection.kernels.cpu.count_sketch import estimates, sketch
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.wire import Arrays


class Algorithm(FullModelMixin):
    """Averages sketches; applies the largest entries of their sum."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Returns momentum and error memory, fp32 (rows, columns); and the seed of all hashes, uint64 (1,).

        Raises ``spec.invalid`` for a budget smaller than one column.
        """
        empty = np.zeros((self.config.rows, self.config.columns_for(count(shapes(model)))), np.float32)
        hashes = np.array([derive_seed(seed, "fetchsgd")], np.uint64)
        return {"momentum": empty, "error": empty, "seed": hashes}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        trained = trained_update(model, client, self.config.local)
        update = client.protected(trained.vector)
        rows, columns = state["error"].shape
        table = sketch(update, rows, columns, int(state["seed"][0]))
        return LocalUpdate({"sketch": table}, trained.metrics)

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        return average(contributions, ["sketch"])

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        d, seed = count(shapes(model)), int(state["seed"][0])
        momentum = np.float32(self.config.momentum) * state["momentum"] + result["sketch"]
        error = state["error"] + np.float32(rate) * momentum
        found = estimates(error, d, seed)
        top = largest(found, self.config.moved(d))
        update = scattered(top, found[top], d)
        apply_dense(model, update, 1.0, int(result["rounding"][0]))
        rows, columns = error.shape
        missed = sketch(update, rows, columns, seed) == 0
        return {"momentum": momentum * missed, "error": error * missed, "seed": state["seed"]}
