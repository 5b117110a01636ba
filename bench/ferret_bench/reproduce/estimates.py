"""Estimates of an update: through a projection and back, and by the zeroth-order method.

The zeroth-order method is that of the paper's theorem 3: g_k = (F(x + ε·v_k) − F(x))/ε, estimate V·g/K. The directions
v_k come from the paper's truncated normal, like the columns of T: one regenerated from one seed each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from ferret_core.projection.apply import reconstruct_
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block, Piece
from ferret_core.projection.project import Projected, project


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


NAME = "x"


def equal_blocks(d: int, L: int) -> list[Block]:
    """A vector of d elements cut into L blocks of the same size; L divides d."""
    size = d // L
    return [Block(i, f"{NAME}[{i}]", size, (Piece(NAME, i * size, 0, size),)) for i in range(L)]


def send(delta: Tensor, blocks: Sequence[Block], letter: str, K: Sequence[int], seed: int) -> Projected:
    """The coordinates γ of Δ, fp32 (d,)."""
    return project({NAME: delta}, {NAME: torch.zeros_like(delta)}, blocks, basis(letter), K, seed)


def receive(d: int, blocks: Sequence[Block], letter: str, terms: Sequence[Projected]) -> Tensor:
    """The mean of the reconstructions Δ~ = V·γ, fp32 (d,)."""
    estimate = torch.zeros(d)
    scaled = [term._replace(coordinates=[gamma / -len(terms) for gamma in term.coordinates]) for term in terms]
    reconstruct_({NAME: estimate}, blocks, basis(letter), scaled)
    return estimate


def reconstruct(delta: Tensor, letter: str, K: int, seed: int) -> Tensor:
    """Δ~ of Δ, fp32 (d,), taken as one block."""
    blocks = equal_blocks(len(delta), 1)
    return receive(len(delta), blocks, letter, [send(delta, blocks, letter, [K], seed)])


def cosine(estimate: Tensor, delta: Tensor) -> float:
    return float(cosine_similarity(estimate.double(), delta.double(), dim=0))


def error(estimate: Tensor, delta: Tensor) -> float:
    """‖Δ~ − Δ‖²/‖Δ‖²."""
    exact = delta.double()
    return float((estimate.double() - exact).square().sum() / exact.square().sum())


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


def zeroth_order(F: Function, x: Tensor, K: int, epsilon: float, seed: int) -> Tensor:
    """V·g/K, fp32 (d,), for K directions of ``seed``; the gradient times ρ, in the mean."""
    total = torch.zeros_like(x)
    for V in directions(len(x), range(K), seed):
        total += scalars(F, x, V, epsilon) @ V
    return total / K
