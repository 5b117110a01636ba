"""One vector through a projection and back."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from ferret_core.projection.apply import reconstruct_
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block, Piece
from ferret_core.projection.project import Projected, project

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
