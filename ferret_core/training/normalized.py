"""Normalised gradient descent: every step moves the model by the same length, and every tensor by its share of it.

    for every tensor l with d_l of the model's d elements:   w_l ← w_l − η √(d_l / d) · g_l / ‖g_l‖

The root mean square of a step is then η / √d in every tensor. Within a tensor the step has the gradient's direction,
whose large entries lie where the loss is steep: random coordinates carry it best. Between tensors it has the balance
that Adam gives. The rate is the length of a step in the units of the weights, so that it means the same for a model
of any size. No state is kept. Layer-wise normalisation: You et al., "Large Batch Optimization for Deep Learning:
Training BERT in 76 minutes", ICLR 2020, https://arxiv.org/abs/1904.00962; here without the weights' own norms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer


class Normalized(Optimizer):
    """Steps of length ``lr``; a tensor whose gradient is 0 stays where it is, and its share is not given to others.

    ``elements`` is d where ``params`` are not all that the model trains; without it d is theirs.
    """

    def __init__(self, params: Sequence[nn.Parameter], lr: float, elements: int | None = None) -> None:
        super().__init__(params, {"lr": lr})
        self.elements = elements or sum(parameter.numel() for parameter in params)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        for group in self.param_groups:
            parameters: list[nn.Parameter] = group["params"]
            for parameter in parameters:
                if parameter.grad is None:
                    continue
                length = float(torch.linalg.vector_norm(parameter.grad))
                share = math.sqrt(parameter.numel() / self.elements)
                if length > 0:
                    parameter.add_(parameter.grad, alpha=-group["lr"] * share / length)
