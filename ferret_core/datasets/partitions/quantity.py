"""Quantity skew: clients hold data that look alike, but much or little of them.

Li et al., "Federated Learning on Non-IID Data Silos: An Experimental Study", ICDE 2022,
https://arxiv.org/abs/2102.02079 (their ``q ~ Dir(β)``): the clients' shares of the data are drawn from a Dirichlet
distribution, and filled at random whatever the labels. A small ``beta`` gives most examples to few clients.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from ferret_core.datasets.partitions._base import fill_up, need_examples
from ferret_core.protocol.limits import MAX_EXAMPLES
from ferret_core.protocol.spec import Strict


class Config(Strict):
    """How strong the skew is, and the least that a client gets."""

    beta: float = Field(default=0.5, ge=1e-3, le=1e6, description="Concentration: smaller is more skewed")
    min_examples: int = Field(default=1, ge=1, le=MAX_EXAMPLES, description="Least number of examples of a client")


class Partition:
    """A random permutation, cut by Dirichlet shares; clients left below ``min_examples`` take from the largest."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def split(self, labels: Sequence[str], clients: int, seed: int) -> list[list[int]]:
        """Index lists, one per client; ``partition.invalid`` if not all clients can have ``min_examples``."""
        need_examples(len(labels), clients, self.config.min_examples)
        rng = np.random.Generator(np.random.PCG64(seed))
        ends = rng.dirichlet([self.config.beta] * clients).cumsum()[:-1] * len(labels)
        shards = [part.tolist() for part in np.split(rng.permutation(len(labels)), np.rint(ends).astype(int))]
        fill_up(shards, self.config.min_examples)
        return [sorted(shard) for shard in shards]
