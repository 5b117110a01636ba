"""Squared norms on the GPU: at memory speed, one fp64 sum per tile."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ferret_core.projection.kernels.gpu._jit import Value
from ferret_core.projection.kernels.gpu._launch import launch, tiles
from ferret_core.projection.kernels.gpu._tiles import load, place


def squared_norm(before: Tensor, after: Tensor) -> Tensor:
    """Returns ‖before − after‖² of two vectors of any float type, fp64 (): differences in fp32, squares and sums in
    fp64.

    The same bits in every run. It is computed asynchronously until it is read.
    """
    sums = torch.empty(tiles(0, len(after)), dtype=torch.float64, device=after.device)
    launch(_squares, len(sums), before, after, len(after), sums)
    return sums.sum()


@triton.jit
def _squares(before: Value, after: Value, count: Value, sums: Value) -> None:
    """Sums over one tile of the vectors."""
    number = tl.program_id(0)
    _, at, inside = place(number, 0, count)
    delta = (load(before, at, inside) - load(after, at, inside)).to(tl.float64)
    tl.store(sums + number, tl.sum(delta * delta))
