"""The data of one experiment: every simulated client's shard and the held-out examples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ferret_core import catalog
from ferret_core.datasets._base import Example
from ferret_core.datasets._encoding import shard_of
from ferret_core.datasets._shard import Shard
from ferret_core.federation import client_names
from ferret_core.protocol.digest import derive_seed
from ferret_core.protocol.spec import ExperimentSpec

KEPT_SHARDS = 16


class Dealt(NamedTuple):
    """The examples as the specification deals them out: ``clients`` holds indices into ``train`` by client's name."""

    train: Sequence[Example]
    test: Sequence[Example]
    clients: dict[str, list[int]]


def deal(spec: ExperimentSpec) -> Dealt:
    """Loads the dataset and splits it; without simulated clients nothing is read but the held-out examples.

    Raises ``dataset.invalid`` for unreadable data and ``partition.invalid`` where they cannot be split as asked.
    """
    source = catalog.dataset(spec.dataset)
    test = source.test()
    names = client_names(spec.participants.simulated)
    if not names:
        return Dealt([], test, {})
    train = source.train()
    labels = [example.label for example in train]
    shards = catalog.partition(spec.partition).split(labels, len(names), derive_seed(spec.seed, "partition"))
    return Dealt(train, test, dict(zip(names, shards, strict=True)))


class FederatedData:
    """Deals the dataset out once, and tokenises a shard when it is asked for; raises as :func:`deal` does."""

    def __init__(self, spec: ExperimentSpec, tokenizer: Any, context: int) -> None:
        self._dealt = deal(spec)
        self._tokenizer = tokenizer
        self._context = context
        self.test = self._dealt.test
        self.shard = lru_cache(maxsize=KEPT_SHARDS)(self._shard)

    def _shard(self, participant: str) -> Shard:
        """The tokenised examples of a simulated client."""
        examples = [self._dealt.train[index] for index in self._dealt.clients[participant]]
        return shard_of(examples, self._tokenizer, self._context)
