"""Runs a model for its answers alone."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def inference(model: nn.Module) -> Generator[None]:
    """Evaluation mode (no dropout) without gradients; afterwards the mode there was."""
    mode = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(mode)
