"""Partitions: each is a file with a frozen ``Config`` and a final class ``Partition`` that distributes examples."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Protocol

from ferret_core.protocol.errors import FerretError


class FederatedPartition(Protocol):
    """The interface of the class ``Partition`` in ``ferret_core/datasets/partitions/<name>.py``."""

    def __init__(self, config: Any) -> None: ...

    def split(self, labels: Sequence[str], clients: int, seed: int) -> list[list[int]]:
        """Assigns every index of ``labels`` to exactly one of ``clients`` sorted, non-empty shards, determined by
        ``seed``.

        Raises ``partition.invalid`` for too few examples, or labels that do not suit the number of clients.
        """
        ...


def need_examples(examples: int, clients: int, each: int = 1) -> None:
    """Raises ``partition.invalid`` unless every client can have ``each`` examples."""
    if clients * each > examples:
        raise unsuitable(
            clients,
            f"the dataset has {examples} training examples, {clients * each} are needed ({each} per client): "
            f"use at most {examples // each} clients, or more data",
        )


def unsuitable(clients: int, message: str) -> FerretError:
    """Creates ``partition.invalid`` about the number of clients."""
    return FerretError.of_field("partition.invalid", "participants.simulated", clients, message)


def by_label(labels: Sequence[str]) -> dict[str, list[int]]:
    """Returns the indices of each label's examples, labels in the order of their names."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for index, label in enumerate(labels):
        found[label].append(index)
    return {label: found[label] for label in sorted(found)}


def fill_up(shards: list[list[int]], least: int) -> None:
    """Moves examples one by one from the largest shard until every shard has at least ``least``."""
    largest = [(-len(shard), client) for client, shard in enumerate(shards)]
    heapq.heapify(largest)
    for shard in shards:
        while len(shard) < least:
            client = largest[0][1]
            shard.append(shards[client].pop())
            heapq.heapreplace(largest, (-len(shards[client]), client))
