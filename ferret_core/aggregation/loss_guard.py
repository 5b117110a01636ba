"""The loss guard: a few sequences that say, before a round counts, whether its model still works.

They are development sequences where the server has set some aside, and else a few of those that are held out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, TypeVar

from torch import nn

from ferret_core.datasets._client_data import ClientData
from ferret_core.datasets._tokenize import shard_of
from ferret_core.evaluation.loss import total_loss
from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from ferret_core.experiment.federated_data import FederatedData
    from ferret_core.replica.replica import Replica

T = TypeVar("T")
SEQUENCES = 8
LEAST_LOSS = 1.0
"""Nats per token: below it, a few sequences rise and fall by large factors that mean nothing."""


class LossGuard:
    """The mean loss on ``shard``, sequences that no participant trains on."""

    def __init__(self, shard: ClientData) -> None:
        self._shard = shard
        self._digest, self._loss = "", math.nan

    @classmethod
    def of(cls, replica: Replica, data: FederatedData) -> Self:
        """Over the development examples, or else at most ``SEQUENCES`` of the held-out ones, at even distances."""
        chosen = data.development or _few(data.held_out)
        return cls(shard_of(chosen, replica.tokenizer, replica.context, replica.spec.prompt.template))

    def loss(self, model: nn.Module) -> float:
        """Nats per token; infinite for a model that gives no numbers."""
        try:
            return total_loss(model, self._shard, SEQUENCES).mean
        except FerretError as error:
            if error.code != "training.non_finite":
                raise
            return math.inf

    def loss_of(self, digest: str, model: nn.Module) -> float:
        """The loss of the model with ``digest``, which is measured only where it was not the last to be remembered."""
        if digest != self._digest:
            self.remember(digest, self.loss(model))
        return self._loss

    def remember(self, digest: str, loss: float) -> None:
        """A round's last loss is the one that the next round begins with."""
        self._digest, self._loss = digest, loss


def _few(items: Sequence[T]) -> list[T]:
    count = min(SEQUENCES, len(items))
    return [items[index * len(items) // count] for index in range(count)]


def explosion_limit(before: float, explosion: float) -> float:
    """The loss beyond which a round that began at ``before`` has exploded."""
    return explosion * max(before, LEAST_LOSS)
