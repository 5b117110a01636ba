"""Long tensors in parts: some torch operations, such as fp64 sums, copy their whole input."""

from __future__ import annotations

from torch import Tensor

STRETCH = 1 << 20
"""Elements; their fp64 copy takes 8 MiB."""


def chunks(tensor: Tensor) -> tuple[Tensor, ...]:
    """Splits ``tensor`` into vectors of at most 2²⁰ elements; on a GPU, which makes no copy, into one."""
    flat = tensor.detach().reshape(-1)
    return flat.split(STRETCH) if flat.device.type == "cpu" else (flat,)
