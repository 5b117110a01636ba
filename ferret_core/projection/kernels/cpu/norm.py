"""The squared norm of an update on the CPU, at the speed of reading both models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy import float32, float64
from torch import Tensor

from ferret_core.projection.kernels.cpu._jit import compiled
from ferret_core.projection.kernels.cpu._threads import ranges, share_out
from ferret_core.projection.kernels.cpu._tile_io import stored, widen

STRETCH = 1 << 20
LANES = 512


def squared_norm(before: Tensor, after: Tensor) -> Tensor:
    """Returns ‖before − after‖² of two vectors, fp64 (), as the reference does."""
    stretches = ranges(len(after), STRETCH)
    totals = np.zeros(len(stretches))
    b, a = stored(before), stored(after)
    share_out(_add_squares, [(b[i:j], a[i:j], totals[n : n + 1]) for n, (i, j) in enumerate(stretches)])
    return torch.tensor(math.fsum(totals), dtype=torch.float64)


@compiled
def _add_squares(before: Any, after: Any, total: Any) -> None:
    lanes = np.zeros(LANES, float64)
    rows, rest = len(after) // LANES, len(after) % LANES
    b, a = before[: rows * LANES].reshape((rows, LANES)), after[: rows * LANES].reshape((rows, LANES))
    for row in range(rows):
        for lane in range(LANES):
            delta = float64(float32(widen(b[row, lane]) - widen(a[row, lane])))
            lanes[lane] += delta * delta
    b_rest, a_rest = before[rows * LANES :], after[rows * LANES :]
    for lane in range(rest):
        delta = float64(float32(widen(b_rest[lane]) - widen(a_rest[lane])))
        lanes[lane] += delta * delta
    for lane in range(LANES):
        total[0] += lanes[lane]
