"""SparseLoCo: participants send the largest entries of every chunk in two bits each, and keep a decaying memory of the
rest.

Sarfi et al., "Communication Efficient LLM Pre-training with SparseLoCo", 2025, https://arxiv.org/abs/2508.15706, as in
the authors' public code (https://github.com/one-covenant/templar), which trained Covenant-72B.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of AdamW on wᵢ
            eᵢ ← β eᵢ + w − wᵢ                                 (eᵢ: its error memory, 0 at first)
            Iᵢ: the places of the k largest |eᵢ| of every chunk of 64 × 64 entries
            of every tensor: μ, σ ← mean and deviation of eᵢ at Iᵢ;  a bin for each: round((e − μ) / 1.5σ), −2 to 1
            v^ᵢ: the mean of the tensor's entries in the same bin
            send Iᵢ, 12 bits an entry, the bins, 2 bits an entry, and the 4 means of every tensor
            eᵢ ← eᵢ, less v^ᵢ at Iᵢ
        of every tensor: v^ᵢ ← v^ᵢ · min(1, median_j ‖v^_j‖ / ‖v^ᵢ‖)
        w ← w − a · Σᵢ nᵢ v^ᵢ / Σᵢ nᵢ, at each place over its senders i only            (nᵢ: i's examples, or 1)

A weight that only one participant sends moves as far as one that all send. The result has all places that were sent, at
most N·K.

Differences from the authors: They multiply the update by the outer rate α before adding it to the memory; here α is the
server's rate a, which is equivalent for a constant rate. Their T is 30 or more; here the specification sets it. Their
newest code sends places in fewer bits than the paper's 12: with k = 64, about 8 are enough.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from torch import nn

from ferret_core.algorithms._dense import apply_dense, rounding_of, trained_update
from ferret_core.algorithms._sparsify import matrices_of, matrices_state, mean_over_senders, scattered, with_error
from ferret_core.algorithms.base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.algorithms.configs._chunks import (
    from_chunks,
    in_chunks,
    largest_of_each,
    pack_positions,
    unpack_positions,
)
from ferret_core.algorithms.configs._elias_fano import pack_indices, unpack_indices
from ferret_core.algorithms.configs.sparseloco import BINS, Config, tensor_norms
from ferret_core.models.parameters import shapes
from ferret_core.models.shapes import Shapes, count
from ferret_core.protocol.wire import Array, Arrays, Contribution

RANGE = 6.0
"""Deviations that the bins cover together: three on either side of the mean."""


class Algorithm(FullModelMixin):
    """Averages two-bit entries of every chunk over their senders, with error feedback."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Returns the tensors' sides; raises ``spec.invalid`` for a budget too small for one entry of every chunk."""
        self.config.chunks(shapes(model))
        return matrices_state(shapes(model))

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        trained = trained_update(model, client, self.config.local)
        update = client.protected(with_error(trained.vector, client.memory, self.config.decay))
        chunks = self.config.chunks(shapes(model))
        ordered = in_chunks(update, chunks.cuts)
        places = largest_of_each(ordered, chunks)
        parts = np.split(ordered[places], np.cumsum(chunks.entries)[:-1])
        bins, means = zip(*map(_quantised, parts), strict=True)
        arrays = {
            "positions": pack_positions(places, chunks),
            "bins": np.packbits(np.concatenate(bins)[:, None] >> np.array([1, 0]) & 1),
            "means": np.stack(means),
        }
        ordered[places] -= self.config.values(arrays, chunks)
        return LocalUpdate(arrays, trained.metrics, memory={"error": from_chunks(ordered, chunks.cuts)})

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        chunks, received = self.config.chunks(tensors := matrices_of(state)), list(contributions)
        values = [self.config.values(sent.contribution.arrays, chunks) for sent in received]
        shares = _shares(np.array([tensor_norms(sent, chunks) for sent in values]))
        union, mean = mean_over_senders(
            [unpack_positions(sent.contribution.arrays["positions"], chunks) for sent in received],
            [sent.pull * share[chunks.tensors] * v for sent, share, v in zip(received, shares, values, strict=True)],
            [sent.weight for sent in received],
        )
        rounding = rounding_of(received[0].contribution)
        return {**pack_indices(union, count(tensors)), "values": mean.astype(np.float32), "rounding": rounding}

    def decoded(self, state: State, contribution: Contribution, shapes: Shapes) -> Array:
        chunks, arrays = self.config.chunks(shapes), contribution.arrays
        places = unpack_positions(arrays["positions"], chunks)
        return from_chunks(scattered(places, self.config.values(arrays, chunks), count(shapes)), chunks.cuts)

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        chunks, d, values = self.config.chunks(shapes(model)), count(shapes(model)), result["values"]
        ordered = scattered(unpack_indices(result, len(values), d), values, d)
        apply_dense(model, from_chunks(ordered, chunks.cuts), rate, int(result["rounding"][0]))
        return state


def _quantised(values: Array) -> tuple[Array, Array]:
    """Returns the bin of each entry, int64 below ``BINS``, and each bin's mean, fp32; 0 for an empty bin."""
    centred = values - values.mean(dtype=np.float64)
    deviation = centred.std(ddof=1) if len(values) > 1 else 0.0
    width = RANGE * deviation / BINS or 1.0
    bins = np.clip(np.rint(centred / width) + BINS // 2, 0, BINS - 1).astype(np.int64)
    sums, counts = np.bincount(bins, values, BINS), np.bincount(bins, minlength=BINS)
    return bins, (sums / np.maximum(counts, 1)).astype(np.float32)


def _shares(norms: Array) -> Array:
    """Returns the factors that limit the norms of participants' tensors to the median, fp64 (N, tensors)."""
    median = np.sort(norms, axis=0)[(len(norms) - 1) // 2]
    return np.divide(median, norms, out=np.ones_like(norms), where=norms > median)
