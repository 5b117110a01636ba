"""Runs a site's own functions in a round, with the context they need, and checks their effect on the model."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import nn, optim

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.client_data import Batch, ClientData
from ferret_core.models.parameters import finite, inference
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.training import optimizers
from ferret_core.training.config import LocalConfig, ZerothOrderConfig
from ferret_core.training.local import seeded, training_mode
from ferret_core.training.loss import device_of

if TYPE_CHECKING:
    from ferret_core.client.hooks import Function, Site


@dataclass(frozen=True)
class TrainingContext:
    """A round, as passed to a site's own function.

    The experiment requests ``steps`` of ``batch_size`` sequences at ``learning_rate``; the function may deviate.
    ``tokenizer`` is the model's. ``seed`` (64 bits) belongs to this round and participant; it seeds the generators of
    torch, NumPy and Python. ``shard`` holds the tokenised examples, with the experiment's prompt.
    """

    round: int
    rounds: int
    participant: str
    steps: int
    learning_rate: float
    batch_size: int
    seed: int
    tokenizer: Any
    shard: ClientData
    device: torch.device
    local: LocalConfig | ZerothOrderConfig
    step: Callable[[int], None] | None = None

    def on_step(self, done: int) -> None:
        """Reports progress; call it after each local step, with the number of steps done.

        Raises the errors that must end the training, such as a lost lease or the site's own limits.
        """
        if self.step is not None:
            self.step(done)

    def batches(self) -> Iterator[dict[str, torch.Tensor]]:
        """Yields one batch for each of ``steps``, in this round's order: ``input_ids``, ``attention_mask`` and
        ``labels``.

        They are int64 (batch_size, tokens) on the model's device; ``labels`` are -100 where no loss is taken.
        """
        batches = self.shard.batches(self.batch_size, self.seed)
        return (self._on_device(next(batches)) for _ in range(self.steps))

    def every_example(self) -> Iterator[dict[str, torch.Tensor]]:
        """Yields batches like :meth:`batches`, with every example once."""
        return map(self._on_device, self.shard.ordered(self.batch_size))

    def optimizer(self, model: nn.Module) -> optim.Optimizer:
        """Returns the experiment's optimizer, over the tuned weights."""
        if not isinstance(self.local, LocalConfig):
            raise TypeError("this experiment has no optimizer: its algorithm uses only losses")
        weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
        return optimizers.build(self.local, weights, self.learning_rate)

    def _on_device(self, batch: Batch) -> dict[str, torch.Tensor]:
        return {name: tensor.to(self.device) for name, tensor in batch._asdict().items()}


class CustomTrainingMetrics(NamedTuple):
    """Metrics of a site's own training."""

    metrics: dict[str, float]


class CustomTraining(NamedTuple):
    """A site's functions with their inputs: its unprocessed examples, and the model's tokenizer."""

    site: Site
    examples: Sequence[Example]
    tokenizer: Any

    def context(
        self,
        model: nn.Module,
        task: RoundTask,
        shard: ClientData,
        local: LocalConfig | ZerothOrderConfig,
        on_step: Callable[[int], None] | None,
    ) -> TrainingContext:
        """Returns the functions' context for ``task``."""
        return TrainingContext(
            round=task.round,
            rounds=task.rounds,
            participant=task.participant,
            steps=local.steps_for(len(shard)),
            learning_rate=local.rate(task.round, task.rounds),
            batch_size=local.batch_size * local.accumulation,
            seed=task.data_seed,
            tokenizer=self.tokenizer,
            shard=shard,
            device=device_of(model),
            local=local,
            step=on_step,
        )

    def train(self, model: nn.Module, context: TrainingContext) -> CustomTrainingMetrics:
        """Moves ``model``'s fp32 weights in place by the site's own training.

        Raises ``training.non_finite`` if the model is not finite afterwards, and ``TypeError`` for a function that
        violates its interface, which must not be retried.
        """
        assert self.site.trains is not None
        with _same_parameters(model), training_mode(model), reproducible(context.device, context.seed):
            loss = _loss("train", self.site.trains, model, self.examples, context)
        if not finite(model):
            message = "after the site's own training some weights are not finite: lower its rate, or clip its gradients"
            raise FerretError("training.non_finite", message)
        return CustomTrainingMetrics({} if loss is None else {"train_loss": loss})

    def evaluate(self, model: nn.Module, context: TrainingContext) -> dict[str, float]:
        """Returns the site's own loss of ``model``, if it has a function for it."""
        if self.site.evaluates is None:
            return {}
        with inference(model), reproducible(context.device, context.seed):
            loss = _loss("evaluate", self.site.evaluates, model, self.examples, context)
        return {} if loss is None else {"participant_eval_loss": loss}


@contextmanager
def reproducible(device: torch.device, seed: int) -> Generator[None]:
    """Derives all draws from global generators from ``seed``; restores the generators afterwards."""
    python, numpy = random.getstate(), np.random.get_state()
    with seeded(device, seed):
        random.seed(seed)
        np.random.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)


def _loss(name: str, function: Function, *arguments: Any) -> float | None:
    loss = function(*arguments)
    if loss is None:
        return None
    try:
        value = float(loss)
    except (TypeError, ValueError) as error:
        raise TypeError(f"@site.{name} returns a loss as a number, or None, not {type(loss).__name__}") from error
    if not math.isfinite(value):
        raise FerretError.of_field("training.non_finite", f"{name}'s loss", value, "is not a number: lower the rate")
    return value


@contextmanager
def _same_parameters(model: nn.Module) -> Generator[None]:
    """Restores ``requires_grad``, and raises ``TypeError`` unless the tuned weights are the same as before."""
    before = dict(model.named_parameters(remove_duplicate=False))
    kinds = {name: (parameter.requires_grad, parameter.shape, parameter.dtype) for name, parameter in before.items()}
    yield
    after = dict(model.named_parameters(remove_duplicate=False))
    for name, (tuned, shape, dtype) in kinds.items():
        found = after.get(name)
        if found is None or found is not before[name] or (found.shape, found.dtype) != (shape, dtype):
            raise TypeError(f"@site.train moves the weights it is given, but {name} is another tensor now, or gone")
        if found.requires_grad and not tuned:
            raise TypeError(f"@site.train moves the weights that the experiment tunes, and {name} is not one of them")
        found.requires_grad_(tuned)
    if added := after.keys() - before.keys():
        raise TypeError(f"@site.train moves the weights it is given, and adds none such as {min(added)}")
