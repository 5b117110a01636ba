"""By natural id: every label is one client; clients are in the order of the labels' names.

Splits Natural Instructions by task, CodeAlpaca by language, and any file by its lines' owners if they are its labels:
the natural partition of LEAF (Caldas et al., "LEAF: A Benchmark for Federated Settings", 2018,
https://arxiv.org/abs/1812.01097). Nothing is drawn, so the seed does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferret_core.datasets.partitions.base import by_label, unsuitable
from ferret_core.protocol.spec import StrictModel


class Config(StrictModel):
    """No options."""


class Partition:
    """One client per label."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def split(self, labels: Sequence[str], clients: int, seed: int) -> list[list[int]]:
        """Returns an index list per client; raises ``partition.invalid`` unless clients and labels are equally many."""
        shards = list(by_label(labels).values())
        if clients != (count := len(shards)):
            raise unsuitable(clients, f"labels of the training examples: {count}, each a client; set it to {count}")
        return shards
