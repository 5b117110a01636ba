"""Evaluation loss: the model's loss on held-out responses."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from torch import nn

from ferret_core.datasets._client_data import Batch, ClientData
from ferret_core.models.parameters import inference
from ferret_core.protocol.errors import FerretError
from ferret_core.training.loss import response_loss
from ferret_core.training.micro_batches import MicroBatches, micro_batches


class Total(NamedTuple):
    """``nll``: Σ −log p in nats over ``tokens`` response tokens."""

    nll: float
    tokens: int

    @property
    def mean(self) -> float:
        return self.nll / self.tokens


def total_loss(
    model: nn.Module, shard: ClientData, batch_size: int, on_batch: Callable[[], None] = lambda: None
) -> Total:
    """Returns the loss on all response tokens of ``shard``, summed in one fixed order in double precision.

    ``on_batch`` is called before each batch; an exception in it ends the measurement. A batch that runs out of memory
    is halved, and so are later ones. Raises ``training.non_finite`` if the loss is not finite, and ``memory.exhausted``
    if not even one sequence fits.
    """
    total, tokens, fitting = 0.0, 0, MicroBatches(batch_size)
    with inference(model):
        for batch in shard.ordered(batch_size):
            on_batch()
            for nll, count in fitting.fit(partial(_losses, model, batch)):
                total += nll
                tokens += count
    if not math.isfinite(total):
        raise FerretError(
            "training.non_finite",
            f"the evaluation loss is {total}: lower server.learning_rate or the local learning rate",
        )
    return Total(total, tokens)


def _losses(model: nn.Module, batch: Batch, size: int) -> list[tuple[float, int]]:
    """Returns −log p and the number of response tokens of each part of ``batch``, of at most ``size`` sequences."""
    losses = (response_loss(model, part) for part in micro_batches([batch], size))
    return [(loss.nll.item(), loss.tokens) for loss in losses]
