"""DeMo: participants send the signs of the strongest frequencies of a momentum and keep the rest.

Peng et al., "DeMo: Decoupled Momentum Optimization", 2024, https://arxiv.org/abs/2411.19870, in the form of DisTrO,
with which Psyche trained 40 B parameters (https://github.com/PsycheFoundation/psyche): only signs are sent.

    for each round r:
        for each participant i in parallel:
            wᵢ ← w; T steps of a first-order optimizer on wᵢ
            mᵢ ← β mᵢ + w − wᵢ                                     (mᵢ: its momentum, 0 at first)
            Yᵢ ← the discrete cosine transform of every chunk of 64 × 64 entries of mᵢ
            send Iᵢ, of every chunk the places of the k largest |Yᵢ|; their signs; sᵢ, the RMS of w − wᵢ
            mᵢ ← mᵢ − the inverse transform of Yᵢ at Iᵢ
        Ȳ ← Σᵢ nᵢ sign(Yᵢ) / Σᵢ nᵢ, at each place over its senders i only             (nᵢ: i's examples, or 1)
        w ← w − a · s̄ · sign(the inverse transform of Ȳ)               (s̄: the mean sᵢ)

Every weight moves by s̄, the mean move of local training. The result has all coefficients that were sent; a sign of 0
does not move a weight.

Differences from the authors: They send after every step, and mᵢ accumulates gradients times the learning rate, which is
also the length of the step. Here a round has T local steps, mᵢ accumulates their moves, and the length is measured, 4
bytes. Psyche takes gradients at w − η sign(mᵢ); here training starts at w. Their places take 16 bits, or 8 in small
chunks, here 12. Ȳ is rounded to 2⁻¹⁰ and the transform's matrix to 2⁻¹⁴, so that every replica has the same signs.

The discrete cosine transform is bit-identical on every machine: its matrix C, of type II and orthonormal, has entries
rounded to 2⁻¹⁴. Sums of integers below 2⁵³ are exact in fp64 in any order. A library's matrix product of such entries
with others of few bits therefore has the same bits everywhere. C Cᵀ is 1 up to 3·10⁻⁴.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
from torch import nn

from ferret_core.algorithms._dense import apply_dense, rounding_of, trained_update
from ferret_core.algorithms._sparsify import matrices_of, matrices_state, mean_over_senders, scattered, with_error
from ferret_core.algorithms.base import Client, FullModelMixin, LocalUpdate, State, Weighted
from ferret_core.algorithms.configs._chunks import (
    Chunks,
    Cut,
    from_chunks,
    in_chunks,
    largest_of_each,
    pack_positions,
    unpack_positions,
)
from ferret_core.algorithms.configs._elias_fano import pack_indices, unpack_indices
from ferret_core.algorithms.configs.demo import Config
from ferret_core.algorithms.configs.norms import norm
from ferret_core.models.parameters import shapes
from ferret_core.models.shapes import Shapes, count
from ferret_core.protocol.wire import Array, Arrays, Contribution

PRECISION = 2.0**14
STEPS = 1024
"""Ȳ is rounded to multiples of 1/STEPS."""


def transformed(ordered: Array, cuts: list[Cut]) -> Array:
    """Returns C X Cᵀ of every chunk X, in chunk order, in the type of ``ordered``."""
    return _of_each(ordered, cuts, forward=True)


def transformed_back(coefficients: Array, cuts: list[Cut]) -> Array:
    """Returns Cᵀ Y C of every chunk Y; exact for fp64 multiples of 2⁻¹⁰ of magnitude up to 1."""
    return _of_each(coefficients, cuts, forward=False)


def _of_each(ordered: Array, cuts: list[Cut], *, forward: bool) -> Array:
    result = np.empty_like(ordered)
    for tensor in cuts:
        chunks = ordered[tensor.elements].reshape(-1, tensor.height, tensor.width)
        left, right = (cosines(side).astype(ordered.dtype) for side in (tensor.height, tensor.width))
        moved = left @ chunks @ right.T if forward else left.T @ chunks @ right
        result[tensor.elements] = moved.reshape(-1)
    return result


@cache
def cosines(side: int) -> Array:
    """Returns C, fp64 (side, side): row k is √(2/n) cos(π (2j + 1) k / 2n), row 0 is 1/√n."""
    row, column = np.ogrid[:side, :side]
    matrix = np.sqrt(2 / side) * np.cos(np.pi * (2 * column + 1) * row / (2 * side))
    matrix[0] = 1 / np.sqrt(side)
    return np.rint(matrix * PRECISION) / PRECISION


class Algorithm(FullModelMixin):
    """Averages signs of the strongest frequencies; applies the signs of the inverse transform."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def init_state(self, model: nn.Module, seed: int) -> State:
        """Returns the tensors' sides; raises ``spec.invalid`` for a budget too small for one entry of every chunk."""
        self.config.chunks(shapes(model))
        return matrices_state(shapes(model))

    def local_update(self, model: nn.Module, state: State, client: Client) -> LocalUpdate:
        trained = trained_update(model, client, self.config.local)
        update = client.protected(trained.vector)
        chunks = self.config.chunks(shapes(model))
        momentum = in_chunks(with_error(update, client.memory, self.config.decay), chunks.cuts)
        coefficients = transformed(momentum, chunks.cuts)
        places = largest_of_each(coefficients, chunks)
        momentum -= transformed_back(scattered(places, coefficients[places], len(update)), chunks.cuts)
        arrays = {
            "positions": pack_positions(places, chunks),
            "signs": np.packbits(coefficients[places] < 0),
            "scale": np.array([norm(update) / np.sqrt(len(update))], np.float32),
        }
        return LocalUpdate(arrays, trained.metrics, memory={"error": from_chunks(momentum, chunks.cuts)})

    def aggregate(self, state: State, contributions: Iterable[Weighted]) -> Arrays:
        chunks, received = self.config.chunks(tensors := matrices_of(state)), list(contributions)
        weights = [sent.weight for sent in received]
        union, mean = mean_over_senders(
            [unpack_positions(sent.contribution.arrays["positions"], chunks) for sent in received],
            [sent.weight * _signs(sent.contribution, chunks) for sent in received],
            weights,
        )
        scale = sum(sent.pull * float(sent.contribution.arrays["scale"][0]) for sent in received) / sum(weights)
        return {
            **pack_indices(union, count(tensors)),
            "coefficients": (np.rint(STEPS * mean) / STEPS).astype(np.float16),
            "scale": np.array([scale], np.float32),
            "rounding": rounding_of(received[0].contribution),
        }

    def decoded(self, state: State, contribution: Contribution, shapes: Shapes) -> Array:
        chunks, arrays = self.config.chunks(shapes), contribution.arrays
        places = unpack_positions(arrays["positions"], chunks)
        return _step(chunks, places, _signs(contribution, chunks), arrays["scale"][0], count(shapes))

    def apply_update(self, model: nn.Module, state: State, result: Arrays, rate: float) -> State:
        chunks, d, coefficients = self.config.chunks(shapes(model)), count(shapes(model)), result["coefficients"]
        places = unpack_indices(result, len(coefficients), d)
        apply_dense(model, _step(chunks, places, coefficients, result["scale"][0], d), rate, int(result["rounding"][0]))
        return state


def _signs(received: Contribution, chunks: Chunks) -> Array:
    """Returns the signs, fp64 (K,)."""
    return 1.0 - 2.0 * np.unpackbits(received.arrays["signs"], count=sum(chunks.entries))


def _step(chunks: Chunks, places: Array, coefficients: Array, scale: np.float32, d: int) -> Array:
    """Returns fp32 (d,): ``scale`` times the signs of the coefficients' inverse transform."""
    spectrum = np.zeros(d)
    spectrum[places] = coefficients
    signs = np.sign(transformed_back(spectrum, chunks.cuts)).astype(np.float32)
    return scale * from_chunks(signs, chunks.cuts)
