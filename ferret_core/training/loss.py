"""The loss of a causal language model on response tokens, shared by training and evaluation."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from ferret_core.datasets.tokenization.client_data import IGNORED, Batch


class Loss(NamedTuple):
    """``nll``: Σ −log p over the response tokens (scalar, fp32, natural logarithm); ``tokens``: their number."""

    nll: torch.Tensor
    tokens: int


def response_loss(model: nn.Module, batch: Batch) -> Loss:
    """Runs ``model`` on ``batch``, moved to the model's device; each token is predicted from the preceding ones."""
    logits, targets, counted = _predicted(model, batch)
    nll = functional.cross_entropy(logits[counted].float(), targets[counted], reduction="sum")
    return Loss(nll, count_targets(batch))


def loss_by_sequence(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Returns Σ over the sequences of the mean −log p of their response tokens, scalar, fp32: each counts the same."""
    logits, targets, counted = _predicted(model, batch)
    losses = functional.cross_entropy(logits[counted].float(), targets[counted], reduction="none")
    rows, lengths = counted.nonzero()[:, 0], counted.sum(dim=1)
    return (losses / lengths[rows]).sum()


def _predicted(model: nn.Module, batch: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns logits, their target tokens, and a mask of the response tokens."""
    input_ids, attention_mask, labels = (tensor.to(device_of(model)) for tensor in batch)
    logits = model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits
    # A soft prompt has logits too, before the logits of the batch's own tokens.
    logits, targets = logits[:, -labels.shape[1] : -1], labels[:, 1:]
    return logits, targets, targets != IGNORED


def count_targets(batch: Batch) -> int:
    """Counts the tokens of ``batch`` that contribute to the loss."""
    return int((batch.labels[:, 1:] != IGNORED).sum())


def device_of(model: nn.Module) -> torch.device:
    """Returns the device of the model's first parameter."""
    return next(model.parameters()).device
