"""DRIVE: participants rotate their updates randomly and send one bit per entry and one scale per chunk.

Vargaftik et al., "DRIVE: One-bit Distributed Mean Estimation", NeurIPS 2021, https://arxiv.org/abs/2105.08339; equal to
one-bit EDEN, Vargaftik et al., "EDEN: Communication-Efficient and Robust Distributed Mean Estimation for Federated
Learning", ICML 2022, https://arxiv.org/abs/2108.08842.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ
            xᵢ ← w − wᵢ (+ eᵢ), cut into chunks c of m = 4,096
            yᵢ,c ← H Dᵢ xᵢ,c / √m                             (Dᵢ: fresh random signs; H: Hadamard)
            send sign(yᵢ,c) and Sᵢ,c = ‖yᵢ,c‖² / ‖yᵢ,c‖₁       (scale = "biased": ‖yᵢ,c‖₁ / m)
            x^ᵢ,c ← Dᵢ H Sᵢ,c sign(yᵢ,c) / √m
            eᵢ ← xᵢ − x^ᵢ                                     (error feedback)
        w ← w − a · Σᵢ nᵢ x^ᵢ / Σᵢ nᵢ                         (nᵢ: i's examples, or 1)

Rotated entries are almost normally distributed, so E‖x^ − x‖² is (π/2 − 1)‖x‖² = 0.57‖x‖². The error averages out over
participants, because the signs Dᵢ follow from the seeds of their tasks. The biased scale has the smallest error, (1 −
2/π)‖x‖² = 0.36‖x‖², but it does not average out. Error feedback compensates for it: x^ is then never further from x
than 0 is.

Differences from the papers: They rotate the whole vector, padded to a power of two. Here each chunk of 4,096 entries is
rotated and has a separate scale, 1/128 bit per entry. If a few entries dominate a chunk, H cannot mix them, in the
papers as here, and the mean is biased. The result is dense, 4 bytes per parameter: the papers, too, compress only
uploads.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import torch
from torch import nn

from ferret_core.algorithms._dense import apply_dense, average_of, trained_update
from ferret_core.algorithms._sparsify import with_error
from ferret_core.algorithms.base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.algorithms.configs.drive import CHUNK, Config
from ferret_core.models.parameters import shapes
from ferret_core.models.shapes import Shapes, count
from ferret_core.projection import FORMAT_VERSION
from ferret_core.projection.bases.hadamard import rotate, rotate_back
from ferret_core.protocol.wire import Array, Arrays, Contribution


class Algorithm(FullModelMixin):
    """Averages signs of rotated updates after rotating them back."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Returns the number of parameters d."""
        return {"parameters": np.array([count(shapes(model))], np.uint64)}

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        seed = client.task.seed
        trained = trained_update(model, client, self.config.local)
        update = client.protected(with_error(trained.vector, client.memory))
        rotated = rotate(torch.from_numpy(update), seed).numpy()
        arrays = {"signs": np.packbits(rotated < 0), "scales": self._scales(rotated)}
        memory = {"error": update - _decoded(arrays, seed, len(update))} if self.config.error_feedback else {}
        columns = {"projection": FORMAT_VERSION, "seed": seed}
        return LocalUpdate(arrays, trained.metrics, memory, columns)

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        return average_of(contributions, partial(_update_of, int(state["parameters"][0])))

    def decoded(self, state: State, contribution: Contribution, shapes: Shapes) -> Array:
        return _update_of(count(shapes), contribution)

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        apply_dense(model, result["update"], rate, int(result["rounding"][0]))
        return state

    def _scales(self, rotated: Array) -> Array:
        """Returns S, fp32, one per chunk; 0 for a chunk of zeros."""
        absolute = np.abs(rotated, dtype=np.float64)
        sums = absolute.sum(axis=1)
        if self.config.scale == "biased":
            return (sums / CHUNK).astype(np.float32)
        squares = np.square(absolute).sum(axis=1)
        return np.divide(squares, sums, out=np.zeros_like(sums), where=sums > 0).astype(np.float32)


def _update_of(d: int, received: Contribution) -> Array:
    assert received.meta.seed is not None
    return _decoded(received.arrays, received.meta.seed, d)


def _decoded(arrays: Arrays, seed: int, d: int) -> Array:
    """Returns x^, fp32 (d,)."""
    signs = 1 - 2 * np.unpackbits(arrays["signs"]).astype(np.float32)
    scaled = arrays["scales"][:, None] * signs.reshape(-1, CHUNK)
    return rotate_back(torch.from_numpy(scaled), seed, d).numpy()
