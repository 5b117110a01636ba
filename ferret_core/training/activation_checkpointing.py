"""Activation checkpointing: layers store only their inputs, and recompute the rest in the backward pass.

Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016, https://arxiv.org/abs/1604.06174.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint

from ferret_core.protocol.errors import FerretError

SWITCH, METHOD = "gradient_checkpointing", "_gradient_checkpointing_func"
"""Attributes with which a transformers model switches checkpointing on and selects its function."""


@contextmanager
def checkpointing(model: nn.Module) -> Generator[None]:
    """Checkpoints every layer of ``model`` in training mode: the same gradients for less memory; restores it
    afterwards.

    Layers are switched one by one: transformers' own switch leaves hooks on the embeddings, which only reentrant
    checkpoints need. Raises ``model.invalid`` for a model without support.
    """
    layers = _layers(model)
    if not supports_checkpointing(model):
        message = f"{type(model).__name__} has no layers that can be checkpointed: set it to false"
        raise FerretError.of_field("model.invalid", "activation_checkpointing", True, message)
    before = [{name: vars(layer)[name] for name in (SWITCH, METHOD) if name in vars(layer)} for layer in layers]
    try:
        for layer in layers:
            vars(layer).update({SWITCH: True, METHOD: partial(checkpoint, use_reentrant=False)})
        yield
    finally:
        for layer, own in zip(layers, before, strict=True):
            for name in (SWITCH, METHOD):
                vars(layer).pop(name, None)
            vars(layer).update(own)


def supports_checkpointing(model: nn.Module) -> bool:
    """True if ``model`` has layers that can be checkpointed."""
    return bool(_layers(model)) and getattr(model, "supports_gradient_checkpointing", False)


def _layers(model: nn.Module) -> list[nn.Module]:
    return [layer for layer in model.modules() if hasattr(layer, SWITCH)]
