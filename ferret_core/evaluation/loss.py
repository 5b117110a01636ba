"""Evaluation loss: how surprised a model is by held-out responses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from torch import nn

from ferret_core.datasets._base import Shard
from ferret_core.evaluation._mode import inference
from ferret_core.protocol.errors import FerretError
from ferret_core.training.loss import response_loss


class Total(NamedTuple):
    """``nll``: Σ −log p in nats over ``tokens`` response tokens."""

    nll: float
    tokens: int

    @property
    def mean(self) -> float:
        return self.nll / self.tokens


def mean_loss(model: nn.Module, shard: Shard, batch_size: int) -> float:
    """Mean −log p in nats over all response tokens of ``shard``; as :func:`total_loss`."""
    return total_loss(model, shard, batch_size).mean


def total_loss(model: nn.Module, shard: Shard, batch_size: int, on_batch: Callable[[], None] = lambda: None) -> Total:
    """The loss on all response tokens of ``shard``, summed in one fixed order in double precision.

    ``on_batch`` is called before each batch, and what it raises ends the measurement. Raises ``training.non_finite``
    when a model has left the range of numbers.
    """
    total, tokens = 0.0, 0
    with inference(model):
        for batch in shard.ordered(batch_size):
            on_batch()
            loss = response_loss(model, batch)
            total += loss.nll.item()
            tokens += loss.tokens
    if not math.isfinite(total):
        raise FerretError(
            "training.non_finite",
            f"the evaluation loss is {total}: lower server.learning_rate or the local learning rate",
        )
    return Total(total, tokens)
