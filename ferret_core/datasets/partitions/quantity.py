"""Quantity skew: clients hold similar data in different amounts.

Li et al., "Federated Learning on Non-IID Data Silos: An Experimental Study", ICDE 2022,
https://arxiv.org/abs/2102.02079 (their ``q ~ Dir(β)``): the clients' shares of the data are drawn from a Dirichlet
distribution, and filled randomly, independent of labels. A small ``beta`` gives most examples to few clients.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from ferret_core.datasets.partitions.base import fill_up, need_examples
from ferret_core.protocol.limits import MAX_EXAMPLES
from ferret_core.protocol.spec import StrictModel


class Config(StrictModel):
    """Strength of the skew, and the minimum size of a client's share."""

    beta: float = Field(default=0.5, ge=1e-3, le=1e6, description="Concentration: smaller is more skewed")
    min_examples: int = Field(default=1, ge=1, le=MAX_EXAMPLES, description="Minimum number of examples per client")


class Partition:
    """A random permutation, cut by Dirichlet shares; clients left below ``min_examples`` take from the largest."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def split(self, labels: Sequence[str], clients: int, seed: int) -> list[list[int]]:
        """Returns an index list per client; raises ``partition.invalid`` if not all can have ``min_examples``."""
        need_examples(len(labels), clients, self.config.min_examples)
        rng = np.random.Generator(np.random.PCG64(seed))
        ends = rng.dirichlet([self.config.beta] * clients).cumsum()[:-1] * len(labels)
        shards = [part.tolist() for part in np.split(rng.permutation(len(labels)), np.rint(ends).astype(int))]
        fill_up(shards, self.config.min_examples)
        return [sorted(shard) for shard in shards]
