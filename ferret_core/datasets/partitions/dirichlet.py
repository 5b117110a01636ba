"""Label skew: each label's examples are spread over the clients in proportions drawn from a Dirichlet distribution.

Hsu et al., "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification", 2019,
https://arxiv.org/abs/1909.06335, in the per-label form of Yurochkin et al., 2019, https://arxiv.org/abs/1905.12022. A
small ``alpha`` gives most of a label to few clients, a large one approaches equal shares. Data with a single label are
skewed only in size.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from ferret_core.datasets.partitions.base import by_label, fill_up, need_examples
from ferret_core.protocol.limits import MAX_EXAMPLES
from ferret_core.protocol.spec import StrictModel


class Config(StrictModel):
    """Strength of the skew, and the minimum size of a client's share."""

    alpha: float = Field(default=0.5, ge=1e-3, le=1e6, description="Concentration: smaller is more skewed")
    min_examples: int = Field(default=1, ge=1, le=MAX_EXAMPLES, description="Minimum number of examples per client")


class Partition:
    """Dirichlet shares per label; clients below ``min_examples`` are filled up from the largest."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def split(self, labels: Sequence[str], clients: int, seed: int) -> list[list[int]]:
        """Returns an index list per client; raises ``partition.invalid`` if not all can have ``min_examples``."""
        need_examples(len(labels), clients, self.config.min_examples)
        rng = np.random.Generator(np.random.PCG64(seed))
        shards: list[list[int]] = [[] for _ in range(clients)]
        for indices in by_label(labels).values():
            ends = rng.dirichlet([self.config.alpha] * clients).cumsum()[:-1] * len(indices)
            owners = np.searchsorted(ends, np.arange(len(indices)) + 0.5)
            for owner, index in zip(owners, rng.permutation(indices), strict=True):
                shards[owner].append(int(index))
        fill_up(shards, self.config.min_examples)
        return [sorted(shard) for shard in shards]
