"""The loss of a causal language model on response tokens, shared by training and evaluation.

Logits are computed only for response tokens and only for ``CHUNK`` numbers at a time, with their gradients: a batch of
long answers under a large vocabulary needs no more memory for them than a short one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn import functional

from ferret_core.datasets.tokenization.client_data import IGNORED, Batch
from ferret_core.training.footprint import CHUNK
from ferret_core.training.micro_batches import randomness

_plain: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
"""True for a model that returns its last layer's output as logits, and does not scale or cap it."""


class Loss(NamedTuple):
    """``nll``: Σ −log p over the response tokens (scalar, fp32, natural logarithm); ``tokens``: their number."""

    nll: torch.Tensor
    tokens: int


def response_loss(model: nn.Module, batch: Batch) -> Loss:
    """Runs ``model`` on ``batch``, moved to the model's device; each token is predicted from the preceding ones."""
    counted = batch.labels[:, 1:] != IGNORED
    return Loss(_weighted_loss(model, batch, torch.ones(int(counted.sum()))), count_targets(batch))


def loss_by_sequence(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Returns Σ over the sequences of the mean −log p of their response tokens, scalar, fp32: each counts the same."""
    counted = batch.labels[:, 1:] != IGNORED
    return _weighted_loss(model, batch, (1 / counted.sum(dim=1))[counted.nonzero()[:, 0]])


def count_targets(batch: Batch) -> int:
    """Counts the tokens of ``batch`` that contribute to the loss."""
    return int((batch.labels[:, 1:] != IGNORED).sum())


def device_of(model: nn.Module) -> torch.device:
    """Returns the device of the model's first parameter."""
    return next(model.parameters()).device


def _weighted_loss(model: nn.Module, batch: Batch, weights: torch.Tensor) -> torch.Tensor:
    """Returns Σ weight · (−log p) over the response tokens, scalar, fp32; ``weights`` is fp32 (response tokens,)."""
    input_ids, attention_mask, labels, weights = (tensor.to(device_of(model)) for tensor in (*batch, weights))
    targets = labels[:, 1:]
    counted = targets != IGNORED

    def loss(head: _Head, hidden: torch.Tensor) -> torch.Tensor:
        # A soft prompt has hidden states too; they come before the batch's own tokens.
        rows = hidden[:, -labels.shape[1] : -1][counted]
        return cast(torch.Tensor, _ChunkedLoss.apply(head, targets[counted], weights, rows, *head.trained))

    inputs = {"input_ids": input_ids, "attention_mask": attention_mask, "use_cache": False}
    if _plain.get(model, True):
        restore, results = randomness(device_of(model)), list[torch.Tensor]()

        def compute(head: _Head, hidden: torch.Tensor) -> torch.Tensor:
            results.append(loss(head, hidden))
            return results[0]

        with _last_layer_replaced(model, compute):
            logits = model(**inputs).logits
        _plain[model] = bool(results) and logits is results[0]
        if _plain[model]:
            return results[0].view(())
        restore()
    logits = model(**inputs).logits
    return loss(_Head(lambda rows: rows, logits.shape[-1], ()), logits).view(())


class _Head(NamedTuple):
    """A model's last layer: its function from rows (n, hidden) to logits (n, ``width``), and its trained parameters."""

    logits: Callable[[torch.Tensor], torch.Tensor]
    width: int
    trained: tuple[nn.Parameter, ...]


class _ChunkedLoss(torch.autograd.Function):
    """Σ weight · (−log p) of rows, fp32; the forward pass computes the gradients too, chunk by chunk.

    As in Hsu et al., "Liger Kernel: Efficient Triton Kernels for LLM Training", 2024,
    https://arxiv.org/abs/2410.10989, section 3.2, for a last layer of any kind.
    """

    @staticmethod
    def forward(
        ctx: Any, head: _Head, targets: torch.Tensor, weights: torch.Tensor, rows: torch.Tensor, *trained: nn.Parameter
    ) -> torch.Tensor:
        # The rank is that of logits, because a model may index them.
        total = rows.new_zeros((1, 1, 1), dtype=torch.float32)
        of_rows = torch.empty_like(rows) if ctx.needs_input_grad[3] else None
        of_trained: list[torch.Tensor] = []
        for begin in range(0, len(rows), step := max(1, CHUNK // head.width)):
            chunk = slice(begin, begin + step)
            with torch.enable_grad():
                part = rows[chunk].detach().requires_grad_(of_rows is not None)
                losses = functional.cross_entropy(head.logits(part).float(), targets[chunk], reduction="none")
                loss = torch.dot(losses, weights[chunk])
            total += loss.detach()
            sources = [part, *trained] if part.requires_grad else list(trained)
            if not sources:
                continue
            gradients = list(torch.autograd.grad(loss, sources))
            if of_rows is not None:
                of_rows[chunk] = gradients.pop(0)
            if of_trained:
                torch._foreach_add_(of_trained, gradients)
            else:
                of_trained = gradients
        ctx.gradients = of_rows, of_trained
        return total

    @staticmethod
    def backward(ctx: Any, *outer: torch.Tensor) -> Any:
        of_rows, of_trained = ctx.gradients
        del ctx.gradients
        return None, None, None, *(None if g is None else g.mul_(outer[0].view(())) for g in (of_rows, *of_trained))


@contextmanager
def _last_layer_replaced(model: nn.Module, by: Callable[[_Head, torch.Tensor], torch.Tensor]) -> Generator[None]:
    """Makes ``by`` the function of the model's last layer within the block; no effect on a model without one."""
    find = getattr(model, "get_output_embeddings", lambda: None)
    layer: Any = find()
    if layer is None:
        yield
        return
    original = layer.forward

    def replaced(hidden: torch.Tensor) -> torch.Tensor:
        trained = tuple(layer.parameters()) if torch.is_grad_enabled() else ()
        return by(_Head(original, layer.out_features, tuple(p for p in trained if p.requires_grad)), hidden)

    layer.forward = replaced
    try:
        yield
    finally:
        del layer.forward
