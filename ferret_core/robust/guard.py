"""The guard: a few held-out sequences that say, before a round counts, whether its model still works."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from torch import nn

from ferret_core.datasets._base import Example
from ferret_core.datasets._encoding import shard_of
from ferret_core.datasets._shard import Shard
from ferret_core.evaluation.loss import total_loss
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import Template

SEQUENCES = 8
LEAST_LOSS = 1.0
"""Nats per token: below it, a few sequences rise and fall by large factors that mean nothing."""


class Guard:
    """The mean loss on ``shard``, held-out sequences that no participant trains on."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._digest, self._loss = "", math.nan

    @classmethod
    def over(cls, held_out: Sequence[Example], tokenizer: Any, context: int, template: Template = "paper") -> Self:
        """At most ``SEQUENCES`` of the held-out examples, at even distances."""
        count = min(SEQUENCES, len(held_out))
        chosen = [held_out[index * len(held_out) // count] for index in range(count)]
        return cls(shard_of(chosen, tokenizer, context, template))

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


def most(before: float, explosion: float) -> float:
    """The loss beyond which a round that began at ``before`` has exploded."""
    return explosion * max(before, LEAST_LOSS)
