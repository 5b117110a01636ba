"""Optimizers of ``torch.optim`` and our own, by their names in a specification.

Muon for matrices, AdamW for everything else: embeddings, vectors and the last layer.

Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024,
https://kellerjordan.github.io/posts/muon, which leaves embeddings and the last layer to AdamW. A matrix's step is
scaled to the root mean square of AdamW's, so that one rate and one weight decay serve both. Liu et al., "Muon is
Scalable for LLM Training", 2025, https://arxiv.org/abs/2502.16982.

    for every matrix:    m ← μ m + (1 − μ) g;  O ← the orthogonal matrix near to (1 − μ) g + μ m, by five steps of
                         Newton and Schulz;  w ← w − η · 0.2 √max(rows, columns) · O
    for everything else: AdamW

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
from collections.abc import Callable, Collection, Sequence
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


class Muon(optim.Optimizer):
    """Both of torch's optimizers in one; ``others`` are the matrices that AdamW moves too."""

    def __init__(
        self,
        params: Sequence[nn.Parameter],
        lr: float,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        others: Collection[nn.Parameter] = (),
    ) -> None:
        super().__init__(params, {"lr": lr})
        apart = {id(parameter) for parameter in others}
        hidden = [parameter for parameter in params if parameter.ndim == 2 and id(parameter) not in apart]
        moved = {id(parameter) for parameter in hidden}
        rest = [parameter for parameter in params if id(parameter) not in moved]
        self._parts: list[optim.Optimizer] = []
        if hidden:
            own = optim.Muon(hidden, lr, weight_decay, momentum, adjust_lr_fn="match_rms_adamw")
            self._parts.append(own)
        if rest:
            self._parts.append(optim.AdamW(rest, lr=lr, weight_decay=weight_decay, betas=betas, eps=eps))

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # pyrefly: ignore[bad-override]
        for part in self._parts:
            part.step()


def embeddings(model: nn.Module) -> list[nn.Parameter]:
    """Returns the matrices with one row per token: the weights of embeddings and of the last layer."""
    last: Any = getattr(model, "get_output_embeddings", lambda: None)()
    layers: list[Any] = [layer for layer in model.modules() if isinstance(layer, nn.Embedding)]
    return [layer.weight for layer in layers + ([] if last is None else [last])]


OWN: dict[str, type[optim.Optimizer]] = {"muon": Muon, "normalized": Normalized}
CLASSES = {
    name.lower(): found for name, found in vars(optim).items() if name.lower() in OPTIMIZERS and isinstance(found, type)
} | OWN


def build(
    config: LocalConfig,
    parameters: Sequence[nn.Parameter],
    rate: float,
    *,
    elements: int | None = None,
    embeddings: Collection[nn.Parameter] = (),
) -> optim.Optimizer:
    """Builds the configured optimizer over ``parameters``, at the round's ``rate``.

    ``elements``: number of all trained elements, if other optimizers move the rest. ``embeddings``: the matrices with
    one row per token.
    """
    decay = {"weight_decay": config.weight_decay} if decays(config.optimizer) else {}
    momentum = {"momentum": config.momentum} if config.optimizer in WITH_MOMENTUM else {}
    share = {"elements": elements} if config.optimizer == "normalized" else {}
    others = {"others": embeddings} if config.optimizer == "muon" else {}
    arguments: dict[str, Any] = {"lr": rate, **decay, **momentum, **share, **others, **config.options}
    return CLASSES[config.optimizer](parameters, **arguments)
