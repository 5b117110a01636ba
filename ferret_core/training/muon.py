"""Muon for matrices, AdamW for everything else: embeddings, vectors and the last layer.

Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024,
https://kellerjordan.github.io/posts/muon, which leaves embeddings and the last layer to AdamW. A matrix's step is
scaled to the root mean square of AdamW's, so that one rate and one weight decay serve both. Liu et al., "Muon is
Scalable for LLM Training", 2025, https://arxiv.org/abs/2502.16982.

    for every matrix:    m ← μ m + (1 − μ) g;  O ← the orthogonal matrix near to (1 − μ) g + μ m, by five steps of
                         Newton and Schulz;  w ← w − η · 0.2 √max(rows, columns) · O
    for everything else: AdamW
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import nn, optim


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
