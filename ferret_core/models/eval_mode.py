"""Evaluation mode of a model."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import nn

from ferret_core.distributed.sharded_tensor import is_sharded


@contextmanager
def inference(model: nn.Module) -> Generator[None]:
    """Switches to evaluation mode (no dropout) without gradients; restores the mode afterwards."""
    mode = model.training
    # Buffers for gathered shards are reused in training, where tensors of inference mode are not allowed.
    without_gradients = torch.no_grad() if is_sharded(model) else torch.inference_mode()
    model.eval()
    try:
        with without_gradients:
            yield
    finally:
        model.train(mode)
