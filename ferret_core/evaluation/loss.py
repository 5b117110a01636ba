"""Evaluation loss: how surprised a model is by held-out responses."""

from __future__ import annotations

import math

from torch import nn

from ferret_core.datasets._base import Shard
from ferret_core.evaluation._mode import inference
from ferret_core.protocol.errors import FerretError
from ferret_core.training.loss import response_loss


def mean_loss(model: nn.Module, shard: Shard, batch_size: int) -> float:
    """Mean −log p in nats over all response tokens of ``shard``, summed in one fixed order in double precision.

    Raises ``training.non_finite`` when a model has left the range of numbers.
    """
    total, tokens = 0.0, 0
    with inference(model):
        for batch in shard.ordered(batch_size):
            loss = response_loss(model, batch)
            total += loss.nll.item()
            tokens += loss.tokens
    if not math.isfinite(total):
        raise FerretError(
            "training.non_finite",
            f"the evaluation loss is {total}: lower algorithm.server_learning_rate or the local learning rate",
        )
    return total / tokens
