"""Cosines of updates that are sent whole or can be decoded, from a sample of their entries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferret_core.aggregation.statistics.cosines import COMPARED, Cosines, cosines, of_weights
from ferret_core.algorithms._base import DecodableUpdate, State
from ferret_core.models.shapes import Shapes, count, sizes
from ferret_core.protocol.wire import Array, Contribution

LOOKED_AT = 1 << 20
"""Number of sampled entries per update; smaller models are compared whole."""
DECODED = 1 << 24
"""Number of parameters above which updates are not decoded for statistics, because decoding would be done twice."""


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
