"""The canonical order of a model's parameters: the order of blocks, of digests and of dense updates."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch
from torch import nn

from ferret_core.protocol.errors import FerretError

HALF = (torch.bfloat16, torch.float16)


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


def sizes(model: nn.Module) -> dict[str, int]:
    """Element counts of the trainable parameters in canonical order."""
    return {name: parameter.numel() for name, parameter in trainable(model).items()}


@contextmanager
def working_copy(model: nn.Module) -> Generator[dict[str, torch.Tensor]]:
    """``model`` on copies of its weights, to train for the length of a ``with`` block; yields the trainable originals.

    The copies are fp32, whatever the type of the model: in half precision an optimizer's small steps would be
    rounded away. Frozen weights of a half type are converted too, for the types to match; buffers are copied.
    Afterwards the model has its own tensors back, untouched.
    """
    before = {name: parameter.detach() for name, parameter in trainable(model).items()}
    own = [(tensor, tensor.data) for tensor in [*model.parameters(), *model.buffers()]]
    try:
        for tensor, _ in own:
            tensor.data = _copy(tensor)
        yield before
    finally:
        for tensor, data in own:
            tensor.data = data


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype in HALF:
        return tensor.data.float()
    frozen = isinstance(tensor, nn.Parameter) and not tensor.requires_grad
    return tensor.data if frozen else tensor.data.clone()


@torch.no_grad()
def finite(model: nn.Module) -> bool:
    """Whether every trainable weight is a number."""
    return all(bool(torch.isfinite(parameter).all()) for parameter in trainable(model).values())
