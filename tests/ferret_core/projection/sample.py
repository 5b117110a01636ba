"""A small model in blocks, and how it is compared."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from ferret_core.projection.blocks import blocks_of

# A matrix beyond the reference's stretch, a vector that fills no lane, a scalar.
SHAPES = {"matrix": (520, 530), "vector": (77,), "scalar": ()}
COUNTS = {"G": [5000, 9, 1], "H": [5000, 9, 1], "R": [2, 9, 1], "T": [2, 9, 1]}
LETTERS = tuple(COUNTS)

every_letter = pytest.mark.parametrize("letter", LETTERS)


def parameters(seed: int, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator).to(dtype) for name, shape in SHAPES.items()}


BLOCKS = blocks_of(parameters(1))


def as_bytes(tensors: Sequence[Tensor]) -> list[bytes]:
    return [tensor.view(-1).view(torch.uint8).numpy().tobytes() for tensor in tensors]
