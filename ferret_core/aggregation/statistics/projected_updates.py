"""Update norms and pairwise cosines, estimated from the coordinates of a round's contributions.

Contributions are held in their sent form, for as long as the aggregation holds them, and only for the compared
participants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from ferret_core.aggregation.statistics.cosines import (
    COMPARED,
    Cosines,
    InnerProducts,
    cosines,
    of_reconstructions,
    of_shared,
)
from ferret_core.algorithms.configs.ferret import is_mean
from ferret_core.algorithms.configs.traits import Projecting
from ferret_core.projection.apply import reconstruct_into
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block
from ferret_core.projection.coordinate_encoding import Kind
from ferret_core.projection.kernels.base import ReconstructionTerm
from ferret_core.projection.variance import relative_noise, square_of
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.wire import Array, Contribution

HELD = 1 << 26
"""Number of coordinates, over all compared participants, decoded at a time."""
LOOKED_AT = 1 << 22
"""Number of weights at which reconstructions under separate seeds are compared; smaller models are compared whole."""
DRAWN = 1 << 30
"""Maximum number of entries of bases T and R drawn for that, per participant."""
STRETCH = 1 << 15
"""Number of consecutive weights per sample."""
DENSE = ("T", "R")
FEW = 8
"""Minimum weights per one-bit coordinate. Below it a coordinate is the sign of one weight rather than of a sum, so it
is not normal.
"""


class UpdateNorms(NamedTuple):
    """One contribution, fp64 (L,): K_l, an unbiased estimate of ‖Δ_l‖², and the corresponding ‖Δ~_l‖²."""

    K: Array
    squares: Array
    energies: Array


class ProjectedUpdates:
    """Coordinates of one round's contributions, in order of arrival."""

    def __init__(self, config: Projecting, blocks: Sequence[Block], device: torch.device) -> None:
        self.lengths: dict[str, UpdateNorms] = {}
        self._config, self._blocks, self._device = config, blocks, device
        self._basis = basis(config.basis)
        self._kept: dict[str, Contribution] = {}
        self._summed: dict[str, int] = {}
        self._most = min(COMPARED, HELD // max(config.total(blocks), 1))

    @property
    def shared(self) -> bool:
        """True if all share one seed, so that their coordinates have one mean."""
        return self._config.seeds == "shared"

    def see(self, contribution: Contribution) -> None:
        name, family = contribution.meta.participant, self._config.basis
        kind, gammas = self._config.decoded(contribution, self._blocks)
        found = [_lengths(block, gamma, family, kind) for block, gamma in self._pairs(gammas)]
        squares, energies = np.array(found, np.float64).T
        self.lengths[name] = UpdateNorms(np.array([len(gamma) for gamma in gammas], np.float64), squares, energies)
        self._summed[name] = contribution.meta.examples if is_mean(contribution) else 1
        if len(self._kept) < self._most:
            self._kept[name] = contribution

    def compared(self, names: Sequence[str]) -> list[str]:
        """Returns the ``names`` that have cosines; empty if one bit for fewer than ``FEW`` weights would bias them."""
        d = sum(block.size for block in self._blocks)
        coarse = self._config.encoding(self._blocks) == "sign" and d < FEW * self._config.total(self._blocks)
        return [] if coarse else [name for name in names if name in self._kept]

    def cosines(self, names: Sequence[str]) -> Cosines:
        """Returns the cosines of the ``compared`` participants, at least two."""
        gammas = [self._config.decoded(self._kept[name], self._blocks)[1] for name in names]
        lengths = [self.lengths[name] for name in names]
        squares = np.stack([each.squares for each in lengths])
        if self.shared:
            products = self._of_shared(gammas, squares)
        else:
            products = self._of_own(names, gammas, np.stack([each.energies for each in lengths]))
        return cosines(products, squares.sum(axis=1))

    def of_mean(self, coordinates: Array, shares: Mapping[str, float]) -> tuple[Array, Array]:
        """Returns, under a shared seed, ‖noise_l‖² and ‖Δ_l‖² of the mean from its ``coordinates``, fp32 (K,): fp64
        (L,).

        One-bit coordinates add the same to the mean's ‖γ‖² as to each participant's own.
        """
        counts = next(iter(self.lengths.values())).K.astype(np.int64)
        gammas = np.split(coordinates, np.cumsum(counts)[:-1])
        found = [_lengths(block, gamma, self._config.basis, "float32") for block, gamma in self._pairs(gammas)]
        squares, energies = np.array(found, np.float64).T.copy()
        if self._config.encoding(self._blocks) == "sign":
            apart = np.array([block.whole for block in self._blocks])
            own = sum(share**2 * self.lengths[name].squares / self._summed[name] for name, share in shares.items())
            squares -= np.where(apart, 0, (math.pi / 2 - 1) * own)
        squares = np.maximum(squares, 0)
        return np.maximum(energies - squares, 0), squares

    def _pairs(self, gammas: Sequence[Array]) -> Iterator[tuple[Block, Array]]:
        return zip(self._blocks, gammas, strict=True)

    def _of_shared(self, gammas: Sequence[Sequence[Array]], squares: Array) -> Iterator[InnerProducts]:
        for position, block in enumerate(self._blocks):
            rows = np.stack([each[position] for each in gammas])
            if rows.shape[1]:
                noise = relative_noise(self._config.basis, "float32", block.size, rows.shape[1])
                spread = 0.0 if block.whole else noise / block.size
                signs = self._config.encoding(self._blocks) == "sign" and not block.whole
                yield of_shared(rows, squares[:, position], spread, signs=signs)

    def _of_own(
        self, names: Sequence[str], gammas: Sequence[Sequence[Array]], energies: Array
    ) -> Iterator[InnerProducts]:
        kept = [self._kept[name].meta for name in names]
        places = np.random.default_rng(derive_seed("compared", kept[0].base_digest))
        share = self._share()
        # One buffer for all stretches: it stays in the cache.
        room = torch.empty(len(names), STRETCH, device=self._device)
        for position, block in enumerate(self._blocks):
            terms = [
                ReconstructionTerm(meta.seed or 0, torch.from_numpy(each[position]).to(self._device))
                for meta, each in zip(kept, gammas, strict=True)
            ]
            inner, drawn = torch.zeros(len(names), len(names), dtype=torch.float64), 0
            for start, count in _stretches(block.size, share, places):
                rows = room[:, :count]
                reconstruct_into(rows, block, self._basis, terms, start)
                inner += (rows @ rows.T).double().cpu()
                drawn += count
            yield of_reconstructions(inner.numpy(), drawn, block.size, energies[:, position])

    def _share(self) -> float:
        """Returns the fraction of the weights that is sampled."""
        d = sum(block.size for block in self._blocks)
        most = float(LOOKED_AT)
        if self._config.basis in DENSE:
            most = min(most, DRAWN * len(self._blocks) / max(self._config.total(self._blocks), 1))
        return min(1.0, most / d)


def _lengths(block: Block, gamma: Array, family: str, kind: Kind) -> tuple[float, float]:
    """Returns ‖Δ_l‖² and ‖Δ~_l‖², estimated from coordinates of this kind."""
    square = float(np.square(gamma, dtype=np.float64).sum())
    if block.whole or not len(gamma):
        return square, square
    sent = int(np.count_nonzero(gamma))
    if sent == 0:
        return 0.0, 0.0
    square *= square_of(family, kind, block.size, len(gamma), sent)
    return square, square * (1 + relative_noise(family, kind, block.size, len(gamma), sent))


def _stretches(size: int, share: float, places: np.random.Generator) -> list[tuple[int, int]]:
    """Returns starts and lengths that cover ``share`` of a block's elements, one at a random place per equal part."""
    wanted = max(1, math.ceil(share * size))
    count = -(-wanted // STRETCH)
    length = -(-wanted // count)
    parts = pairwise(part * size // count for part in range(count + 1))
    return [_within(begin, end, length, places) for begin, end in parts]


def _within(begin: int, end: int, length: int, places: np.random.Generator) -> tuple[int, int]:
    """Draws a start and a length of elements between ``begin`` and ``end``."""
    length = min(length, end - begin)
    return begin + int(places.integers(end - begin - length + 1)), length
