"""Pathological: every client holds exactly ``labels_per_client`` labels, and the owners of a label share it equally.

Li et al., "Federated Learning on Non-IID Data Silos: An Experimental Study", ICDE 2022,
https://arxiv.org/abs/2102.02079 (their ``#C = k``), after the pathological split of McMahan et al., 2017. Each client
in turn gets random labels among the ones with the fewest owners so far: the numbers of owners differ by at most one,
and every label has an owner.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from ferret_core.datasets.partitions.base import by_label, unsuitable
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.limits import MAX_LABELS
from ferret_core.protocol.spec import StrictModel


class Config(StrictModel):
    """The number of labels per client."""

    labels_per_client: int = Field(
        default=2, ge=1, le=MAX_LABELS, description="Labels of each client; fewer are more skewed"
    )


class Partition:
    """A fixed number of labels per client; each label is split into equal random parts for its owners."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def split(self, labels: Sequence[str], clients: int, seed: int) -> list[list[int]]:
        """Returns index lists, one per client; raises ``partition.invalid`` for unsuitable numbers of labels and
        clients."""
        groups = list(by_label(labels).items())
        self._check(len(groups), clients)
        rng = np.random.Generator(np.random.PCG64(seed))
        owners = self._owners(len(groups), clients, rng)
        shards: list[list[int]] = [[] for _ in range(clients)]
        for (_, indices), own in zip(groups, owners, strict=True):
            if len(indices) < len(own):
                message = f"a label has {len(indices)} of the {len(labels)} examples for {len(own)} clients"
                raise unsuitable(clients, f"{message}: use fewer clients, or a smaller partition.labels_per_client")
            for client, part in zip(own, np.array_split(rng.permutation(indices), len(own)), strict=True):
                shards[client] += part.tolist()
        return [sorted(shard) for shard in shards]

    def _check(self, labels: int, clients: int) -> None:
        each = self.config.labels_per_client
        if each > labels:
            message = f"the training examples have only {labels} labels: use no more"
            raise FerretError.of_field("partition.invalid", "partition.labels_per_client", each, message)
        if clients * each < labels:
            least = -(-labels // each)
            raise unsuitable(clients, f"with {each} labels each they cannot hold all {labels}: use at least {least}")

    def _owners(self, labels: int, clients: int, rng: np.random.Generator) -> list[list[int]]:
        """Returns the clients that hold each label."""
        owners: list[list[int]] = [[] for _ in range(labels)]
        for client in range(clients):
            ranked = sorted(rng.permutation(labels).tolist(), key=lambda label: len(owners[label]))
            for label in ranked[: self.config.labels_per_client]:
                owners[label].append(client)
        return owners
