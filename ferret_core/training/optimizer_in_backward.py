"""Stepping in the backward pass: a parameter moves as soon as its gradient is there, and the gradient is let go.

Lv et al., "Full Parameter Fine-tuning for Large Language Models with Limited Resources", ACL 2024 (LOMO),
https://arxiv.org/abs/2306.09782. Never more than one parameter's gradient is held, so that training by plain gradient
descent takes the weights, the activations, and little else.

    in the backward pass, from the last layer to the first:
        as soon as all of ∂ℓ/∂w is there:   w ← w − η ∂ℓ/∂w;   ∂ℓ/∂w is freed

Nothing that is still to be computed needs w: a gradient is complete only when every use of w has been differentiated.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

import torch
from torch import nn
from torch.optim import Optimizer

from ferret_core.training.bfloat16_rounding import Rounding


@contextmanager
def stepping(optimizers: Mapping[nn.Parameter, Optimizer | Rounding]) -> Generator[list[torch.Tensor]]:
    """In the ``with`` block every backward pass steps each parameter by its own optimizer and leaves no gradients.

    Yields a list that fills with the norms of the gradients, which the reader clears.
    """
    norms: list[torch.Tensor] = []

    def step(parameter: torch.Tensor) -> None:
        assert isinstance(parameter, nn.Parameter)
        assert parameter.grad is not None
        norms.append(torch.linalg.vector_norm(parameter.grad, dtype=torch.float32))
        optimizers[parameter].step()
        parameter.grad = None

    handles = [parameter.register_post_accumulate_grad_hook(step) for parameter in optimizers]
    try:
        yield norms
    finally:
        for handle in handles:
            handle.remove()
