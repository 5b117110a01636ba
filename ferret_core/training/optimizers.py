"""Optimizers of ``torch.optim`` and our own, by their names in a specification.

Normalised gradient descent: every step moves the model by the same length, and each tensor by its share.

    for every tensor l with d_l of the model's d elements:   m_l ← β m_l + g_l
                                                             w_l ← w_l − η √(d_l / d) · m_l / ‖m_l‖

With ``normalize_per = "column"`` every column of a matrix, the weights of one input, is normalised instead of the
whole tensor.
The root mean square of a step is η / √d in every tensor. Within a tensor the step has the gradient's direction, with
large entries where the loss is steep: random coordinates represent it best. Between tensors it is balanced like Adam's.
The rate is the length of a step in the units of the weights, so it means the same for a model of any size. Momentum β
averages over the batches of a round before normalisation: an update of the same length, and thus the same noise, makes
more progress. Without momentum there is no state. Layer-wise normalisation: You et al., "Large Batch Optimization for
Deep Learning: Training BERT in 76 minutes", ICLR 2020, https://arxiv.org/abs/1904.00962; here without the norms of the
weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn, optim
from torch.optim import Optimizer

from ferret_core.training.config import LocalConfig
from ferret_core.training.optimizer_options import OPTIMIZERS, WITH_MOMENTUM, decays


class Normalized(Optimizer):
    """Steps of length ``lr``; a tensor with a gradient of 0 does not move, and its share is not given to others.

    With ``momentum`` β, 0 ≤ β < 1, it keeps one tensor per parameter. ``elements`` is d if the model trains more than
    ``params``; by default d counts ``params``.
    """

    def __init__(
        self,
        params: Sequence[nn.Parameter],
        lr: float,
        momentum: float = 0.0,
        normalize_per: str = "tensor",
        elements: int | None = None,
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})
        self.normalize_per = normalize_per
        self.elements = elements or sum(parameter.numel() for parameter in params)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # pyrefly: ignore[bad-override]
        for group in self.param_groups:
            parameters: list[nn.Parameter] = group["params"]
            for parameter in parameters:
                if parameter.grad is None:
                    continue
                direction = self._direction(parameter, parameter.grad, group["momentum"])
                lengths = torch.linalg.vector_norm(direction, dim=self._normed(direction), keepdim=True)
                share = math.sqrt(direction.numel() / lengths.numel() / self.elements)
                # A gradient of length 0 is divided by infinity, so that it moves nothing.
                parameter.addcdiv_(direction, lengths.masked_fill(lengths == 0, math.inf), value=-group["lr"] * share)

    def _normed(self, direction: torch.Tensor) -> int | None:
        """Returns the dimension of the norm; None for the tensor as a whole."""
        return 0 if self.normalize_per == "column" and direction.ndim == 2 else None

    def _direction(self, parameter: nn.Parameter, gradient: torch.Tensor, momentum: float) -> torch.Tensor:
        """Returns m after ``gradient``."""
        if momentum == 0:
            return gradient
        kept = self.state[parameter]
        if "momentum" not in kept:
            kept["momentum"] = torch.zeros_like(gradient)
        return kept["momentum"].mul_(momentum).add_(gradient)


CLASSES = {
    name.lower(): found for name, found in vars(optim).items() if name.lower() in OPTIMIZERS and isinstance(found, type)
} | {"normalized": Normalized}


def build(
    config: LocalConfig,
    parameters: Sequence[nn.Parameter],
    rate: float,
    *,
    elements: int | None = None,
) -> optim.Optimizer:
    """Builds the configured optimizer over ``parameters``, at the round's ``rate``.

    ``elements``: number of all trained elements, if other optimizers move the rest.
    """
    decay = {"weight_decay": config.weight_decay} if decays(config.optimizer) else {}
    momentum = {"momentum": config.momentum} if config.optimizer in WITH_MOMENTUM else {}
    share = {"elements": elements} if config.optimizer == "normalized" else {}
    arguments: dict[str, Any] = {"lr": rate, **decay, **momentum, **share, **config.options}
    return CLASSES[config.optimizer](parameters, **arguments)
