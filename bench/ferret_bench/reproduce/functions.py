"""The two functions with the gradients that the paper reconstructs, and points to take them at."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Function(NamedTuple):
    """F over the last dimension of x, (…, d) → (…), and ∇F, (…, d) → (…, d), in the dtype of x."""

    formula: str
    value: Callable[[Tensor], Tensor]
    gradient: Callable[[Tensor], Tensor]
    smoothness: float


def point(d: int, seed: int) -> Tensor:
    """Standard normal, fp32 (d,)."""
    return torch.randn(d, generator=torch.Generator().manual_seed(seed))


def _squares(x: Tensor) -> Tensor:
    return x.square().sum(-1)


def _twice(x: Tensor) -> Tensor:
    return 2 * x


def _sines(x: Tensor) -> Tensor:
    return x.sin().square().sum(-1)


def _sine_of_twice(x: Tensor) -> Tensor:
    return (2 * x).sin()


SQUARES = Function("Σ xᵢ²", _squares, _twice, smoothness=2)
SINES = Function("Σ sin² xᵢ", _sines, _sine_of_twice, smoothness=2)
