"""Top-K: participants send the largest entries of their updates, and add the rest to the next one.

Stich et al., "Sparsified SGD with Memory", NeurIPS 2018, https://arxiv.org/abs/1809.07599, and Aji and Heafield,
"Sparse Communication for Distributed Gradient Descent", EMNLP 2017, https://arxiv.org/abs/1704.05021.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ
            mᵢ ← w − wᵢ + eᵢ                            (eᵢ: its error memory, 0 at first)
            send Iᵢ, the indices of the K largest |mᵢ|, and vᵢ, the values there, quantised
            eᵢ ← mᵢ, less vᵢ at Iᵢ
        w ← w − a · Σᵢ nᵢ scatter(Iᵢ, vᵢ) / Σᵢ nᵢ       (nᵢ: i's examples, or 1)

The K largest entries are chosen over the whole model. The result has all indices that were sent, at most N·K.

Differences from the papers: They sparsify every gradient of SGD; here the move of T local steps is sparsified. They
send 32 bits for each value and index. Here values are encoded like Ferret's coordinates, in 16 bits by default, and the
rounding error stays in the memory; indices take about 2 + log₂(d/K) bits. A participant that is not sampled keeps its
memory until it is.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import nn

from ferret_core.algorithms._dense import apply_dense, rounding_of, trained_update
from ferret_core.algorithms._sparsify import largest, scattered, with_error
from ferret_core.algorithms.base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.algorithms.configs._elias_fano import pack_indices, unpack_indices
from ferret_core.algorithms.configs.topk import Config
from ferret_core.models.parameters import shapes
from ferret_core.models.shapes import Shapes, count
from ferret_core.projection import quantize
from ferret_core.protocol.wire import Array, Arrays, Contribution


class Algorithm(FullModelMixin):
    """Averages sparse updates with error feedback."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Returns the number of parameters d; raises ``spec.invalid`` for a budget too small for one entry."""
        d = count(shapes(model))
        self.config.entries(d)
        return {"parameters": np.array([d], np.uint64)}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        trained = trained_update(model, client, self.config.local)
        update = client.protected(with_error(trained.vector, client.memory))
        d, K = len(update), self.config.entries(len(update))
        indices = largest(update, K)
        values = quantize.quantize([torch.from_numpy(update[indices])], self.config.coordinates, client.task.seed)
        update[indices] -= self.config.values(values, K)
        arrays = {**pack_indices(indices, d), **values}
        return LocalUpdate(arrays, trained.metrics, memory={"error": update})

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        d = int(state["parameters"][0])
        K = self.config.entries(d)
        received = list(contributions)
        indices = np.concatenate([unpack_indices(sent.contribution.arrays, K, d) for sent in received])
        values = np.concatenate(
            [sent.pull * self.config.values(sent.contribution.arrays, K).astype(np.float64) for sent in received]
        )
        union, places = np.unique(indices, return_inverse=True)
        mean = np.bincount(places, values) / sum(sent.weight for sent in received)
        rounding = rounding_of(received[0].contribution)
        return {**pack_indices(union, d), "values": mean.astype(np.float32), "rounding": rounding}

    def decoded(self, state: State, contribution: Contribution, shapes: Shapes) -> Array:
        d = count(shapes)
        K = self.config.entries(d)
        return scattered(unpack_indices(contribution.arrays, K, d), self.config.values(contribution.arrays, K), d)

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        d, values = int(state["parameters"][0]), result["values"]
        update = scattered(unpack_indices(result, len(values), d), values, d)
        apply_dense(model, update, rate, int(result["rounding"][0]))
        return state
