"""Blocks: the model cut along its parameters, so that basis and budget are chosen per tensor (paper, section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from ferret_core.protocol.errors import FerretError

MAX_BLOCKS = 2**24


class Block(NamedTuple):
    """One parameter tensor: its place in the canonical order, its name, its d_l elements."""

    id: int
    name: str
    size: int


def blocks_of(parameters: Mapping[str, Tensor]) -> list[Block]:
    """One block per parameter, in the order given.

    Raises ``model.invalid`` for an empty tensor, and for more tensors than the projection format can number.
    """
    if len(parameters) > MAX_BLOCKS:
        raise FerretError.of_field(
            "model.invalid", "parameters", len(parameters), f"at most {MAX_BLOCKS} tensors can be numbered"
        )
    return [Block(i, name, _size(name, tensor)) for i, (name, tensor) in enumerate(parameters.items())]


def _size(name: str, tensor: Tensor) -> int:
    if tensor.numel() == 0:
        raise FerretError.of_field("model.invalid", name, list(tensor.shape), "a parameter needs at least one element")
    return tensor.numel()
