"""Collector of a round's statistics: sees each contribution once, and describes the update at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
import torch

from ferret_core.aggregation.projection_noise import ProjectionNoise
from ferret_core.aggregation.statistics import reconstruction_error
from ferret_core.aggregation.statistics.cosines import Cosines
from ferret_core.aggregation.statistics.dense_updates import DenseUpdates
from ferret_core.aggregation.statistics.projected_updates import ProjectedUpdates
from ferret_core.aggregation.statistics.schema import (
    BlockGroup,
    ReconstructionError,
    UpdateStatistics,
    blocks_of,
    group_blocks,
    root_mean_squares,
    sums,
)
from ferret_core.algorithms._base import DecodableUpdate
from ferret_core.models.parameters import trainable
from ferret_core.projection import project
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.wire import Array, Contribution, decode
from ferret_core.replica.replica import Replica
from ferret_core.server.schedule import noise_step


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
            off = reconstruction_error.of_own(self._projected.lengths, shares, cosines, compared)
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
        return reconstruction_error.of_shared(added, squares, K), noise._replace(noise=moved)

    def _per_weight(self, values: Array, parts: Sequence[BlockGroup]) -> list[float]:
        """Returns root mean squares by part, from root mean squares by block."""
        return root_mean_squares(np.square(values) * [block.size for block in self._blocks], parts)
