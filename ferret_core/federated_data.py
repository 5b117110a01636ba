"""The data of one experiment: every simulated client's shard and the held-out examples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ferret_core import catalog
from ferret_core.datasets._base import Example, Shard
from ferret_core.datasets._encoding import shard_of
from ferret_core.federation import client_names
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.spec import ExperimentSpec

KEPT_SHARDS = 64


class FederatedData:
    """Loads the dataset once, splits it as the specification says, and tokenises a shard when it is asked for.

    Raises ``dataset.invalid`` for unreadable data and ``partition.invalid`` when there are too few examples.
    """

    def __init__(self, spec: ExperimentSpec, tokenizer: Any, context: int) -> None:
        source = catalog.dataset(spec.dataset)
        names = client_names(spec.participants.simulated)
        self.test: Sequence[Example] = source.test()
        self._train = source.train() if names else []
        self._tokenizer = tokenizer
        self._context = context
        self._indices = dict(zip(names, self._split(spec, len(names)), strict=True))
        self.shard = lru_cache(maxsize=KEPT_SHARDS)(self._shard)

    def _split(self, spec: ExperimentSpec, clients: int) -> list[list[int]]:
        if not clients:
            return []
        labels = [example.label for example in self._train]
        return catalog.partition(spec.partition).split(labels, clients, derive_seed(spec.seed, "partition"))

    def _shard(self, participant: str) -> Shard:
        """The tokenised examples of a simulated client."""
        examples = [self._train[index] for index in self._indices[participant]]
        return shard_of(examples, self._tokenizer, self._context)
