"""Stepping in the backward pass: a parameter moves as soon as its gradient is complete, and the gradient is freed.

Lv et al., "Full Parameter Fine-tuning for Large Language Models with Limited Resources", ACL 2024 (LOMO),
https://arxiv.org/abs/2306.09782. Only one parameter's gradient is held at a time, so that training by plain gradient
descent takes the weights, the activations, and little else.

    in the backward pass, from the last layer to the first:
        as soon as ∂ℓ/∂w is complete:   w ← w − η ∂ℓ/∂w;   ∂ℓ/∂w is freed

No later computation needs w: a gradient is complete only when every use of w has been differentiated.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager

import torch
from torch import nn
from torch.optim import Optimizer

from ferret_core.training.bfloat16_rounding import StochasticRounding


@contextmanager
def stepping(optimizers: Mapping[nn.Parameter, Optimizer | StochasticRounding]) -> Generator[list[torch.Tensor]]:
    """Makes every backward pass in the ``with`` block step each parameter by its own optimizer and free its gradient.

    Yields a list that fills with the norms of the gradients; the reader clears it.
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
