"""The canonical order of a model's parameters: the order of blocks, of digests and of dense updates."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from ferret_core.protocol.errors import FerretError

Parameters = Mapping[str, torch.Tensor]


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Floating-point parameters that require a gradient, sorted by name, tied ones once (under their first name)."""
    named = sorted(model.named_parameters(remove_duplicate=False))
    found: dict[int, str] = {}
    for name, parameter in named:
        if parameter.requires_grad and parameter.is_floating_point():
            found.setdefault(id(parameter), name)
    first = set(found.values())
    parameters = {name: parameter for name, parameter in named if name in first}
    if not parameters:
        raise FerretError("model.invalid", f"{type(model).__name__} has no trainable floating-point parameter")
    return parameters


def sizes(model: nn.Module) -> list[int]:
    """Element counts of the trainable parameters in canonical order."""
    return [parameter.numel() for parameter in trainable(model).values()]


def snapshot(model: nn.Module) -> dict[str, torch.Tensor]:
    """A copy of the trainable parameters, to compute Δ = before − after and to go back."""
    return {name: parameter.detach().clone() for name, parameter in trainable(model).items()}


@torch.no_grad()
def restore(model: nn.Module, before: Parameters) -> None:
    """Puts the snapshot back, bit for bit."""
    for name, parameter in trainable(model).items():
        parameter.copy_(before[name])


@torch.no_grad()
def finite(model: nn.Module) -> bool:
    """Whether every trainable weight is a number."""
    return all(bool(torch.isfinite(parameter).all()) for parameter in trainable(model).values())
