"""Shards: the examples, sorted by label, are cut into equal pieces, and every client gets a few random ones.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS 2017,
https://arxiv.org/abs/1602.05629, where 100 clients get two shards each: most hold one or two labels, and all the same
number of examples. :mod:`~ferret_core.datasets.partitions.pathological` fixes the number of labels instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from ferret_core.datasets.partitions.base import by_label, need_examples
from ferret_core.protocol.limits import MAX_EXAMPLES
from ferret_core.protocol.spec import StrictModel


class Config(StrictModel):
    """The number of shards per client."""

    shards_per_client: int = Field(
        default=2, ge=1, le=MAX_EXAMPLES, description="Shards of each client; fewer are more skewed"
    )


class Partition:
    """Shards of consecutive examples by label; their sizes differ by at most one example."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def split(self, labels: Sequence[str], clients: int, seed: int) -> list[list[int]]:
        """Returns index lists, one per client; raises ``partition.invalid`` if there are more shards than examples."""
        each = self.config.shards_per_client
        need_examples(len(labels), clients, each)
        ordered = [index for indices in by_label(labels).values() for index in indices]
        pieces = np.array_split(np.array(ordered), clients * each)
        dealt = np.random.Generator(np.random.PCG64(seed)).permutation(clients * each).reshape(clients, each)
        return [sorted(np.concatenate([pieces[piece] for piece in hand]).tolist()) for hand in dealt]
