"""Sums of contributions that are whole updates; :mod:`ferret_core.secure.fixed_point` has the arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferret_core.algorithms.base import State, SummedContributions
from ferret_core.models.shapes import Shapes, count
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.wire import Contribution
from ferret_core.secure import fixed_point
from ferret_core.secure.packing import Entries, Segment


class DenseSums:
    """Sums over ``members`` participants of updates in which no weight moves by more than ``clip``.

    Implements :class:`ferret_core.algorithms.base.SummableContributions`.
    """

    def __init__(self, clip: float, members: int) -> None:
        self._clip, self._members = clip, members

    def segments(self, shapes: Shapes) -> list[Segment]:
        return fixed_point.segments(count(shapes), self._members)

    def integers(self, state: State, contribution: Contribution, shapes: Shapes) -> list[Entries]:
        meta, update = contribution.meta, contribution.arrays["update"]
        seed = derive_seed("grid", meta.base_digest, meta.round, meta.participant)
        return fixed_point.integers(update, self._clip, self._members, seed, meta.metrics.get("train_loss"))

    def mean(
        self, state: State, sums: Sequence[np.ndarray[Any, Any]], count: int, shapes: Shapes
    ) -> SummedContributions:
        update, metrics = fixed_point.mean(sums, count, self._clip, self._members)
        return SummedContributions({"update": update}, metrics, {})
