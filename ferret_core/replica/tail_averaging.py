"""Tail averaging: the mean of the models of the last rounds, in addition to the model that the rounds move.

Polyak and Juditsky, "Acceleration of Stochastic Approximation by Averaging", 1992; the tail alone as in Jain et al.,
"Parallelizing Stochastic Gradient Descent for Least Squares Regression", JMLR 2018, https://arxiv.org/abs/1610.03774.

    after every round t ≥ t₀:   x ← x + (w − x) / (t − t₀ + 1)

It does not affect training, and follows from the ledger alone: every replica computes the same mean, bit for bit. It is
fp32 in host memory, for any type and device of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Self

import torch
from torch import nn

from ferret_core.datasets.base import Example
from ferret_core.distributed.sharded_tensor import local
from ferret_core.evaluation.evaluate import evaluate
from ferret_core.models.parameters import trainable
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica.replica import Replica


class TailMean:
    """The mean of the models after the rounds from ``begin`` to the last one seen; ``count`` is their number."""

    def __init__(self, spec: ExperimentSpec) -> None:
        self.begin = begin(spec)
        self.count = 0
        self._mean: dict[str, torch.Tensor] = {}

    @classmethod
    def of(cls, spec: ExperimentSpec) -> Self | None:
        """Creates an empty mean; None if the specification does not average."""
        return cls(spec) if spec.server.average == "tail" else None

    @torch.no_grad()
    def update(self, replica: Replica) -> None:
        """Adds the replica's model after a round; call it once for each round, in order."""
        if replica.round < self.begin:
            return
        self.count += 1
        for name, weight in trainable(replica.model).items():
            now = local(weight).to("cpu", torch.float32)
            mean = self._mean.setdefault(name, torch.zeros_like(now))
            mean.add_((now - mean).div_(self.count))

    @contextmanager
    def swapped_in(self, replica: Replica) -> Generator[None]:
        """Replaces the replica's model by the mean within the block, and restores it afterwards, bit for bit."""
        state = replica.snapshot()
        self.load_into(replica)
        try:
            yield
        finally:
            replica.restore(state)

    @torch.no_grad()
    def load_into(self, replica: Replica) -> None:
        """Makes the mean the replica's model, rounded to the type of its weights."""
        for name, weight in trainable(replica.model).items():
            local(weight).copy_(self._mean[name])


def begin(spec: ExperimentSpec) -> int:
    """Returns t₀, the first round of the mean: by default the one after the first half of the rounds."""
    return spec.server.average_from or spec.rounds // 2 + 1


def development_loss(
    average: TailMean | None, replica: Replica, loss: Callable[[nn.Module], float]
) -> dict[str, float]:
    """Returns the mean's ``loss`` on the development sequences; empty without a mean or before it begins."""
    if average is None or not average.count:
        return {}
    with average.swapped_in(replica):
        return {"average_development_loss": loss(replica.model)}


def eval_loss(
    average: TailMean | None, replica: Replica, held_out: Sequence[Example], on_batch: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """Returns the mean's loss on :func:`evaluate`'s held-out examples; empty without a mean or before it begins."""
    if average is None or not average.count:
        return {}
    spec = replica.spec
    alone = spec.evaluation.model_copy(update={"generate_examples": 0, "by_label": False})
    with average.swapped_in(replica):
        metrics = evaluate(replica.model, replica.tokenizer, held_out, alone, on_batch, prompt=spec.prompt)
    return {"average_eval_loss": metrics["eval_loss"]}
