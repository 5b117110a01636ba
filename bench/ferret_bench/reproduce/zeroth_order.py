"""The zeroth-order method as the paper's theorem 3 states it: g_k = (F(x + ε·v_k) − F(x))/ε, estimate V·g/K.

The directions v_k come from the paper's truncated normal, like the columns of T: one regenerated from one seed each.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ferret_bench.reproduce.estimate import equal_blocks, receive
from ferret_bench.reproduce.functions import Function
from ferret_core.projection.project import Projected

CHUNK = 1 << 17
ONE = torch.ones(1)


def directions(d: int, columns: range, seed: int) -> Iterator[Tensor]:
    """v_k for each k of ``columns``, fp32 (n, d), as many at a time as a cache holds; its seed is 2³²·seed + k."""
    blocks, step = equal_blocks(d, 1), max(1, CHUNK // d)
    for first in range(columns.start, columns.stop, step):
        some = range(first, min(first + step, columns.stop))
        yield torch.stack([receive(d, blocks, "T", [Projected((seed << 32) + k, [ONE])]) for k in some])


def scalars(F: Function, x: Tensor, V: Tensor, epsilon: float) -> Tensor:
    """g_k for the rows v_k of V (n, d), in the type of x and V: a difference of losses has their rounding errors."""
    return (F.value(x + epsilon * V) - F.value(x)) / epsilon


def estimate(F: Function, x: Tensor, K: int, epsilon: float, seed: int) -> Tensor:
    """V·g/K, fp32 (d,), for K directions of ``seed``; the gradient times ρ, in the mean."""
    total = torch.zeros_like(x)
    for V in directions(len(x), range(K), seed):
        total += scalars(F, x, V, epsilon) @ V
    return total / K
