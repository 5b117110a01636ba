"""Gradients of groups of examples, without a step: of a person's examples, or of all that are public."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack

import torch
from torch import nn

from ferret_core.datasets.tokenization.client_data import ClientData
from ferret_core.models.parameters import trainable
from ferret_core.training.activation_checkpointing import checkpointing
from ferret_core.training.config import LocalConfig
from ferret_core.training.local import batch_nll, seeded, training_mode
from ferret_core.training.loss import count_targets, device_of


def unit_gradients(
    model: nn.Module, shard: ClientData, units: Iterable[Sequence[int]], config: LocalConfig, seed: int
) -> Iterator[Mapping[str, torch.Tensor]]:
    """Yields, for each of ``units`` (positions in the shard), the gradient of its mean loss, by parameter.

    One sequence at a time. The tensors are overwritten by the next unit's. ``seed`` is for dropout.
    """
    parameters = trainable(model)
    with ExitStack() as stack:
        stack.enter_context(training_mode(model))
        stack.enter_context(seeded(device_of(model), seed))
        if config.activation_checkpointing:
            stack.enter_context(checkpointing(model))
        for unit in units:
            model.zero_grad(set_to_none=False)
            batches = [shard.batch([position]) for position in unit]
            counted = sum(map(count_targets, batches)) if config.loss == "tokens" else len(batches)
            for batch in batches:
                (batch_nll(model, batch, config) / counted).backward()
            yield {
                name: torch.zeros_like(weight) if weight.grad is None else weight.grad
                for name, weight in parameters.items()
            }
        model.zero_grad()
