"""The loss of a causal language model on response tokens, shared by training and evaluation."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

from ferret_core.datasets._shard import IGNORED, Batch


class Loss(NamedTuple):
    """``nll``: Σ −log p over the response tokens (scalar, fp32, natural logarithm); ``tokens``: how many they are."""

    nll: torch.Tensor
    tokens: int


def response_loss(model: nn.Module, batch: Batch) -> Loss:
    """Runs ``model`` on ``batch``, moved to the model's device; each token is predicted from those before it."""
    input_ids, attention_mask, labels = (tensor.to(device_of(model)) for tensor in batch)
    logits = model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits
    # A soft prompt has logits too, before those of the batch's own tokens.
    logits, targets = logits[:, -labels.shape[1] : -1], labels[:, 1:]
    counted = targets != IGNORED
    nll = functional.cross_entropy(logits[counted].float(), targets[counted], reduction="sum")
    return Loss(nll, count_targets(batch))


def count_targets(batch: Batch) -> int:
    """How many tokens of ``batch`` a loss is taken on."""
    return int((batch.labels[:, 1:] != IGNORED).sum())


def device_of(model: nn.Module) -> torch.device:
    """Where the model's first parameter is."""
    return next(model.parameters()).device
