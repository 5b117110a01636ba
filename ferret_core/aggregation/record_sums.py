"""Sums of units' integers with noise: the record-level counterpart of :mod:`ferret_core.projection.sign_sums`.

A participant's integers v are the sum of its units', each of length at most √K, and its noise. With Σ their sum over n
participants modulo 2ᵇ, the round's rate η and a batch of B units, the mean is, in units in which ‖γ‖ estimates ‖Δ‖,

    γ̄ = η Σ / (√K n B)

so η is the length of the step if the gradients of all units agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferret_core.algorithms.base import State, SummedContributions
from ferret_core.algorithms.configs.ferret import isometric_factors
from ferret_core.catalog import ResolvedExperiment
from ferret_core.models.shapes import Shapes
from ferret_core.privacy.mechanism import RecordMechanism, unwrapped, wrapped
from ferret_core.projection import FORMAT_VERSION
from ferret_core.projection.blocks import Block
from ferret_core.protocol.wire import Array, Contribution
from ferret_core.secure.packing import Segment


class RecordSums:
    """Sums to round ``number`` of an experiment that protects records, over ``members`` participants.

    Implements :class:`ferret_core.algorithms.base.SummableContributions`.
    """

    def __init__(self, experiment: ResolvedExperiment, members: int, number: int) -> None:
        projection = experiment.traits.projection
        assert projection is not None
        self._projection = projection
        self._mechanism = RecordMechanism.of(experiment.spec, members)
        self._rate = projection.local.rate(number, experiment.spec.rounds)

    def segments(self, shapes: Shapes) -> list[Segment]:
        K = self._projection.total(self._projection.cut(shapes))
        return [self._mechanism.segment(K)]

    def integers(self, state: State, contribution: Contribution, shapes: Shapes) -> Sequence[Array]:
        values = contribution.arrays["coordinates"].astype(np.int64)
        return [wrapped(values, self._mechanism.bits(len(values)))]

    def mean(
        self, state: State, sums: Sequence[np.ndarray[Any, Any]], count: int, shapes: Shapes
    ) -> SummedContributions:
        blocks = self._projection.cut(shapes)
        counts = self._allocated(blocks)
        K = sum(counts)
        total = unwrapped(sums[0], self._mechanism.bits(K)).astype(np.float64)
        factors = np.repeat(isometric_factors(self._projection.basis, blocks, counts), counts)
        mean = self._rate * total / (math.sqrt(K) * count * self._mechanism.batch) / factors
        arrays = {"coordinates": mean.astype(np.float32)}
        return SummedContributions(arrays, {}, {"projection": FORMAT_VERSION, "K": counts})

    def _allocated(self, blocks: Sequence[Block]) -> list[int]:
        return list(self._projection.allocate([0.0] * len(blocks), blocks))
