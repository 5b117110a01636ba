"""Runs a model for its answers alone."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import nn

from ferret_core.distributed.sharded_tensor import is_sharded


@contextmanager
def inference(model: nn.Module) -> Generator[None]:
    """Evaluation mode (no dropout) without gradients; afterwards the mode there was."""
    mode = model.training
    # What shards are gathered into is used again in training, where tensors of inference mode may not be.
    without_gradients = torch.no_grad() if is_sharded(model) else torch.inference_mode()
    model.eval()
    try:
        with without_gradients:
            yield
    finally:
        model.train(mode)
