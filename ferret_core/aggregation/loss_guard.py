"""The loss guard: checks a round's model on a few sequences before the round counts.

It uses development sequences if the server has set some aside, else some of the held-out ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self, TypeVar

from torch import nn

from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.datasets.tokenization.tokenize import shard_of
from ferret_core.evaluation.evaluate import total_loss
from ferret_core.protocol.errors import FerretError

if TYPE_CHECKING:
    from ferret_core.experiment.federated_data import FederatedData
    from ferret_core.replica.replica import Replica

T = TypeVar("T")
SEQUENCES = 8
LEAST_LOSS = 1.0
"""Nats per token: below it, the loss of a few sequences fluctuates by large, meaningless factors."""


class LossGuard:
    """The mean loss on ``shard``, sequences that no participant trains on."""

    def __init__(self, shard: ClientData) -> None:
        self._shard = shard
        self._digest, self._loss = "", math.nan

    @classmethod
    def of(cls, replica: Replica, data: FederatedData) -> Self:
        """Creates a guard on the development examples, or else on at most ``SEQUENCES`` evenly spaced held-out ones."""
        chosen = data.development or _few(data.held_out)
        return cls(shard_of(chosen, replica.tokenizer, replica.context, replica.spec.prompt.template))

    def loss(self, model: nn.Module) -> float:
        """Returns the loss in nats per token; infinite if it is not finite."""
        try:
            return total_loss(model, self._shard, SEQUENCES).mean
        except FerretError as error:
            if error.code != "training.non_finite":
                raise
            return math.inf

    def loss_of(self, digest: str, model: nn.Module) -> float:
        """Returns the loss of the model with ``digest``; measures it only if it is not the last remembered one."""
        if digest != self._digest:
            self.remember(digest, self.loss(model))
        return self._loss

    def remember(self, digest: str, loss: float) -> None:
        """Remembers a round's last loss; the next round begins with it."""
        self._digest, self._loss = digest, loss


def _few(items: Sequence[T]) -> list[T]:
    count = min(SEQUENCES, len(items))
    return [items[index * len(items) // count] for index in range(count)]


def divergence_limit(before: float, max_loss_ratio: float) -> float:
    """Returns the loss above which a round that began at ``before`` has exploded."""
    return max_loss_ratio * max(before, LEAST_LOSS)
