"""What a partition is: a file with a frozen ``Config`` and a final class ``Partition`` that deals out examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pydantic import BaseModel

from ferret_core.protocol.errors import FerretError


class FederatedPartition(Protocol):
    """The interface of ``ferret_core/datasets/partitions/<name>.py``'s class ``Partition``."""

    def __init__(self, config: Any) -> None: ...

    def split(self, labels: Sequence[str], clients: int, seed: int) -> list[list[int]]:
        """Every index of ``labels`` to exactly one of ``clients`` sorted shards, none empty; ``seed`` fixes it all.

        Raises ``partition.invalid`` when there are too few examples.
        """
        ...


class PartitionModule(Protocol):
    """A partition's file: ``Config`` (frozen pydantic) and ``Partition``."""

    Config: type[BaseModel]
    Partition: type[FederatedPartition]


def need_examples(examples: int, clients: int, each: int = 1) -> None:
    """Raises ``partition.invalid`` unless every client can have ``each`` examples."""
    if clients * each > examples:
        raise FerretError.of_field(
            "partition.invalid",
            "participants.simulated",
            clients,
            f"the dataset has {examples} training examples, {clients * each} are needed ({each} per client): "
            f"use at most {examples // each} clients, or more data",
        )
