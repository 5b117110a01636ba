"""Equal random shares: all clients' data are similar, and sizes differ by at most one example."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferret_core.datasets.partitions.base import need_examples
from ferret_core.protocol.spec import StrictModel


class Config(StrictModel):
    """No options."""


class Partition:
    """A random permutation, cut into equal parts."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def split(self, labels: Sequence[str], clients: int, seed: int) -> list[list[int]]:
        """Returns index lists, one per client; raises ``partition.invalid`` if there are more clients than examples."""
        need_examples(len(labels), clients)
        order = np.random.Generator(np.random.PCG64(seed)).permutation(len(labels))
        return [sorted(part.tolist()) for part in np.array_split(order, clients)]
