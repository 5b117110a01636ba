"""QSGD: participants round every entry of their updates randomly to one of a few levels of its bucket's norm.

Alistarh et al., "QSGD: Communication-Efficient SGD via Gradient Quantization and Encoding", NeurIPS 2017,
https://arxiv.org/abs/1610.02132.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ
            mᵢ ← w − wᵢ, cut into buckets b of 512
            send νᵢ,b = max |mᵢ,b|, and of every entry j
                ζᵢ,j = sign(mᵢ,j) ⌊s |mᵢ,j| / νᵢ,b + uⱼ⌋          (uⱼ: fresh, uniform on [0, 1))
        w ← w − a · Σᵢ nᵢ νᵢ ζᵢ/s / Σᵢ nᵢ                     (nᵢ: i's examples, or 1)

So E[ν ζ/s] = m. With ``norm = "l2"``, ν = ‖mᵢ,b‖₂ as in the paper's lemma 3.1: E‖Q(m) − m‖² is at most min(n/s²,
√n/s)·‖m‖² in a bucket of n. Its experiments take the largest entry instead, and so does the default: the error is
smaller, and more entries are not 0.

Differences from the paper: The paper quantises every gradient of SGD; here the move of T local steps is quantised. The
paper's theory uses Elias codes of variable length; its experiments and this implementation use the same number of bits
for each level, here as digits of base 2s + 1. There workers receive each other's codes; here the result is their mean,
dense, 4 bytes per parameter for any number of participants.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from torch import nn

from ferret_core.algorithms._dense import apply_dense, average_of, trained_update
from ferret_core.algorithms.base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.algorithms.configs.qsgd import Config, pack_levels
from ferret_core.models.parameters import shapes
from ferret_core.models.shapes import Shapes, count
from ferret_core.projection.quantize import dither
from ferret_core.protocol.wire import Array, Arrays, Contribution


class Algorithm(FullModelMixin):
    """Averages levels."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Returns the number of parameters d."""
        return {"parameters": np.array([count(shapes(model))], np.uint64)}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        trained = trained_update(model, client, self.config.local)
        update = client.protected(trained.vector)
        norms = self._norms(update)
        levels = self._rounded(update, norms, client.task.seed)
        arrays = {"levels": pack_levels(levels, self.config.levels), "norms": norms}
        return LocalUpdate(arrays, trained.metrics, basis_fields={"K": (len(update),)})

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        return average_of(contributions, partial(self._update_of, int(state["parameters"][0])))

    def decoded(self, state: State, contribution: Contribution, shapes: Shapes) -> Array:
        return self.config.decoded(contribution.arrays, count(shapes))

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        apply_dense(model, result["update"], rate, int(result["rounding"][0]))
        return state

    def _update_of(self, d: int, received: Contribution) -> Array:
        return self.config.decoded(received.arrays, d)

    def _norms(self, update: Array) -> Array:
        """Returns ν, fp32, one per bucket; never below its largest entry."""
        bucket = self.config.bucket_of(len(update))
        buckets = np.pad(update, (0, -len(update) % bucket)).reshape(-1, bucket)
        if self.config.norm == "max":
            return np.abs(buckets).max(axis=1)
        return np.sqrt(np.square(buckets, dtype=np.float64).sum(axis=1)).astype(np.float32)

    def _rounded(self, update: Array, norms: Array, seed: int) -> Array:
        """Returns ζ, whole numbers in fp64 (d,), rounded up or down randomly, so that the mean is preserved."""
        d = len(update)
        unit = np.repeat(np.where(norms > 0, norms, 1), self.config.bucket_of(d))[:d]
        size = np.abs(update, dtype=np.float64) / unit
        return np.copysign(np.floor(self.config.levels * size + dither(seed, 0, d).numpy()), update)
