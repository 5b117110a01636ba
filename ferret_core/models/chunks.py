"""Long tensors in parts: where torch sums in fp64, or asks of each element, it makes a copy of all that it is given."""

from __future__ import annotations

from torch import Tensor

STRETCH = 1 << 20
"""Elements: their fp64 copy takes 8 MiB."""


def stretches(tensor: Tensor) -> tuple[Tensor, ...]:
    """``tensor`` as vectors of at most 2²⁰ elements; on a GPU, which makes no copy, as one."""
    flat = tensor.detach().reshape(-1)
    return flat.split(STRETCH) if flat.device.type == "cpu" else (flat,)
