"""Collector of a round's statistics: sees each contribution once, and describes the update at the end.

Updates that are sent whole or can be decoded are compared on a sample of their entries. The reconstruction error is the
expected ‖Δ~ − Δ‖ / ‖Δ‖ of a round's mean update. With N participants that have shares s_i, each with ‖Δ_i‖² and
E‖noise_i‖² from its coordinates:

own       E‖Δ~ − Δ‖² = Σ s_i² E‖noise_i‖²,   ‖Δ‖² = Σ s_i² ‖Δ_i‖² + c Σ_{i≠j} s_i s_j ‖Δ_i‖‖Δ_j‖
          with c the mean cosine over the pairs, within two of its standard errors and between 0 and 1; anything between
          these where it is not known. That updates do not point away from one another is assumed.
shared    both follow from the mean's coordinates; ‖Δ‖² is known to √(2/K) of the energy in them, block by block.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
import torch

from ferret_core.aggregation.projection_noise import ProjectionNoise
from ferret_core.aggregation.statistics.cosines import COMPARED, Cosines, cosines, of_weights
from ferret_core.aggregation.statistics.projected_updates import ProjectedUpdates, UpdateNorms
from ferret_core.aggregation.statistics.schema import (
    BlockGroup,
    ReconstructionError,
    UpdateStatistics,
    blocks_of,
    group_blocks,
    root_mean_squares,
    shortened,
    sums,
)
from ferret_core.algorithms.base import DecodableUpdate, State
from ferret_core.models.parameters import trainable
from ferret_core.models.shapes import Shapes, count, sizes
from ferret_core.projection import project
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.wire import Array, Contribution, decode
from ferret_core.replica.replica import Replica
from ferret_core.server.schedule import noise_step

CERTAIN = 2.0
"""Half-width of an estimate's range, in standard errors."""
LOOKED_AT = 1 << 20
"""Number of sampled entries per update; smaller models are compared whole."""
DECODED = 1 << 24
"""Number of parameters above which updates are not decoded for statistics, because decoding would be done twice."""


def error_of_own(
    lengths: Mapping[str, UpdateNorms], shares: Mapping[str, float], cosines: Cosines | None, compared: Sequence[str]
) -> ReconstructionError | None:
    """Returns the error for participants with independent noise; None if all updates are zero."""
    squares = np.array([share**2 * lengths[name].squares.sum() for name, share in shares.items()])
    energies = np.array([share**2 * lengths[name].energies.sum() for name, share in shares.items()])
    alone, noise = float(squares.sum()), float((energies - squares).sum())
    together = float(np.sqrt(squares).sum() ** 2) - alone
    if not alone:
        return None
    low, middle, high = _mean_cosine(dict(zip(shares, np.sqrt(squares).tolist(), strict=True)), cosines, compared)
    return _error(noise, *(alone + cosine * together for cosine in (low, middle, high)))


def error_of_shared(noise: Array, squares: Array, K: Array) -> ReconstructionError | None:
    """Returns the error from the mean's ‖noise_l‖², ‖Δ_l‖² and K_l, fp64 (L,); None for a zero update."""
    known = K > 0
    spread = CERTAIN * math.sqrt(float((2 / K[known] * np.square(squares[known])).sum()))
    total = float(squares.sum())
    return _error(float(noise.sum()), max(total - spread, total / 4), total, total + spread) if total else None


def _mean_cosine(
    pulls: Mapping[str, float], cosines: Cosines | None, compared: Sequence[str]
) -> tuple[float, float, float]:
    """Returns the minimum, the expected value and the maximum."""
    if len(pulls) < 2:
        return 0.0, 0.0, 0.0
    chosen = np.array([pulls[name] for name in compared])
    if cosines is None or np.count_nonzero(chosen) < 2:
        return 0.0, 0.5, 1.0
    mean, error = cosines.mean(np.outer(chosen, chosen))
    low, middle, high = np.clip([mean - CERTAIN * error, mean, mean + CERTAIN * error], 0, 1).tolist()
    return low, middle, high


def _error(noise: float, least: float, expected: float, most: float) -> ReconstructionError:
    """Returns the error from E‖Δ~ − Δ‖² and the minimum, expected and maximum ‖Δ‖²."""
    high, middle, low = shortened(np.sqrt(max(noise, 0.0) / np.array([least, expected, most])))
    return ReconstructionError(expected=middle, low=low, high=high)


class DenseUpdates:
    """Samples of one round's updates, in order of arrival; ``seed`` draws the entries."""

    def __init__(self, algorithm: DecodableUpdate, state: State, shapes: Shapes, seed: int) -> None:
        self._algorithm, self._state, self._shapes = algorithm, state, shapes
        self._sizes = list(sizes(shapes).values())
        self._places, self._counts = _places(self._sizes, seed)
        self._rows: dict[str, Array] = {}

    def see(self, contribution: Contribution) -> None:
        sent_whole = "update" in contribution.arrays
        if len(self._rows) < COMPARED and (sent_whole or count(self._shapes) <= DECODED):
            update = self._algorithm.decoded(self._state, contribution, self._shapes)
            self._rows[contribution.meta.participant] = update[self._places]

    def compared(self, names: Sequence[str]) -> list[str]:
        """Returns the ``names`` that have cosines."""
        return [name for name in names if name in self._rows]

    def cosines(self, names: Sequence[str]) -> Cosines:
        """Returns the cosines of the ``compared`` participants, at least two."""
        rows = np.stack([self._rows[name] for name in names])
        parts = np.split(rows, np.cumsum(self._counts)[:-1], axis=1)
        return cosines(of_weights(part, size) for part, size in zip(parts, self._sizes, strict=True))


def _places(lengths: Sequence[int], seed: int) -> tuple[Array, list[int]]:
    """Returns ascending positions in the vector of all parameters, int64, and the number of them in each tensor."""
    share = min(1.0, LOOKED_AT / sum(lengths))
    counts = [max(1, round(share * length)) for length in lengths]
    draws = np.random.default_rng(seed)
    found, first = list[Array](), 0
    for length, some in zip(lengths, counts, strict=True):
        edges = np.arange(some + 1) * length // some
        widths = np.diff(edges)
        found.append(first + edges[:-1] + (draws.random(some) * widths).astype(np.int64))
        first += length
    return np.concatenate(found), counts


class RoundStatistics(NamedTuple):
    """A round's statistics, and its noise, measured on the aggregated coordinates; None without projection."""

    statistics: UpdateStatistics
    noise: ProjectionNoise | None


class StatisticsCollector:
    """Collects the statistics of the round after ``replica``'s current one."""

    def __init__(self, replica: Replica) -> None:
        self._server, self._blocks = replica.spec.server, blocks_of(replica.experiment, replica.shapes)
        self._rate = replica.optimizer.rate(replica.round + 1)
        self._projected: ProjectedUpdates | None = None
        self._dense: DenseUpdates | None = None
        traits = replica.experiment.traits
        if traits.projection is not None:
            device = next(iter(trainable(replica.model).values())).device
            self._projected = ProjectedUpdates(traits.projection, self._blocks, device)
        elif traits.decodable:
            seed = derive_seed("compared", replica.digest)
            self._dense = DenseUpdates(cast(DecodableUpdate, replica.algorithm), replica.state, replica.shapes, seed)

    def see(self, contribution: Contribution) -> None:
        """Adds one contribution. Call it once for each, in participant order."""
        updates = self._projected or self._dense
        if updates is not None:
            updates.see(contribution)

    def describe(
        self,
        before: Mapping[str, torch.Tensor],
        after: Mapping[str, torch.Tensor],
        shares: Mapping[str, float],
        update: bytes,
        noise: ProjectionNoise | None,
        part: float = 1.0,
    ) -> RoundStatistics:
        """Returns the statistics of the round that took the weights from ``before`` to ``after``.

        ``shares`` has the weights in the mean of the participants that count, lowered by clipping; ``update`` is the
        round's blob, ``noise`` its expected noise, and ``part`` the applied fraction of its step.
        """
        noise = noise and noise._replace(noise=part * noise.noise)
        compared, cosines = self._compared(list(shares))
        weights = noise.weights if noise is not None else project.root_mean_squares(before, self._blocks)
        parts = group_blocks(self._blocks)
        found = UpdateStatistics(
            step=root_mean_squares(np.square(project.norms(before, after, self._blocks)), parts),
            weights=self._per_weight(np.array(weights), parts),
            agreement=None if cosines is None else cosines.agreement(compared),
        )
        if self._projected is None or noise is None:
            return RoundStatistics(found, None)
        lengths = [self._projected.lengths[name] for name in shares]
        if self._projected.shared:
            off, noise = self._off_together(self._projected, shares, update, noise, part)
        else:
            off = error_of_own(self._projected.lengths, shares, cosines, compared)
        projected = {
            "noise": self._per_weight(noise.noise, parts),
            "update": root_mean_squares(np.mean([each.squares for each in lengths], axis=0), parts),
            "K": sums(np.mean([each.K for each in lengths], axis=0), parts),
            "error": off,
        }
        return RoundStatistics(found.model_copy(update=projected), noise)

    def _compared(self, names: Sequence[str]) -> tuple[list[str], Cosines | None]:
        updates = self._projected or self._dense
        compared = [] if updates is None else updates.compared(names)
        if updates is None or len(compared) < 2:
            return [], None
        return compared, updates.cosines(compared)

    def _off_together(
        self,
        projected: ProjectedUpdates,
        shares: Mapping[str, float],
        update: bytes,
        noise: ProjectionNoise,
        part: float,
    ) -> tuple[ReconstructionError | None, ProjectionNoise]:
        """Returns the error under one seed: all make the same one, so it is the mean's."""
        added, squares = projected.of_mean(decode(update)[0]["coordinates"], shares)
        K = projected.lengths[next(iter(shares))].K
        moved = noise_step(self._server, np.sqrt(added / noise.sizes), part * self._rate)
        return error_of_shared(added, squares, K), noise._replace(noise=moved)

    def _per_weight(self, values: Array, parts: Sequence[BlockGroup]) -> list[float]:
        """Returns root mean squares by part, from root mean squares by block."""
        return root_mean_squares(np.square(values) * [block.size for block in self._blocks], parts)
