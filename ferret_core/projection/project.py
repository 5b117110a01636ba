"""Projection over a whole model, tensor by tensor: neither Δ nor V is ever held whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ferret_core.projection.bases._base import Basis
from ferret_core.projection.blocks import blocks_of
from ferret_core.projection.reduce import PairwiseSum, lanes
from ferret_core.protocol.errors import FerretError

CHUNK = 1 << 18
Parameters = Mapping[str, Tensor]
"""fp32 tensors by name, in canonical order. Tensors of ``before`` may lie on another device; names are looked up once
each, so a mapping may load them when asked."""


def project(before: Parameters, after: Parameters, basis: Basis, K: Sequence[int], seed: int) -> list[Tensor]:
    """γ_l, fp32 (K_l,), of Δ_l = before_l − after_l for every block l; empty where K_l is 0 (Algorithm 1, line 11).

    Raises ``model.invalid`` for a parameter that is not contiguous fp32.
    """
    return [
        basis.project(*_pair(before, after, block.name), block, K_l, seed)
        for block, K_l in zip(blocks_of(after), K, strict=True)
    ]


def norms(before: Parameters, after: Parameters) -> list[float]:
    """‖before_l − after_l‖ of every block, differences in fp32, squares and sums in fp64; raises as ``project``."""
    return [_norm(*_pair(before, after, name)) for name in after]


def apply_(parameters: Parameters, basis: Basis, terms: Sequence[tuple[int, Sequence[Tensor]]]) -> None:
    """w_l ← w_l − V_l·c_l in place for each term (seed, [c_l, fp32 (K_l,)]) in turn (Algorithm 1, line 6).

    Coefficients are coordinates already multiplied by server learning rate and participant's weight: at a rate of 1
    and weights that sum to 1 the step is the unbiased estimate of the mean update. Raises as ``project``.
    """
    for block in blocks_of(parameters):
        weights = _flat(parameters, block.name)
        basis.apply_(weights, block, [(seed, c[block.id].to(weights.device)) for seed, c in terms])


def _norm(before: Tensor, after: Tensor) -> float:
    squares = PairwiseSum()
    for start in range(0, len(after), CHUNK):
        delta = (before[start : start + CHUNK] - after[start : start + CHUNK]).to(torch.float64)
        squares.add(lanes(delta * delta))
    return math.sqrt(squares.total().item())


def _pair(before: Parameters, after: Parameters, name: str) -> tuple[Tensor, Tensor]:
    end = _flat(after, name)
    return _flat(before, name).to(end.device), end


def _flat(parameters: Parameters, name: str) -> Tensor:
    """The parameter as a vector that shares its memory."""
    tensor = parameters[name].detach()
    if tensor.dtype != torch.float32:
        # In half precision most updates are smaller than half the last bit of the weight they should move.
        raise FerretError.of_field(
            "model.invalid", name, str(tensor.dtype), "updates would vanish in it; keep the global model in float32"
        )
    if not tensor.is_contiguous():
        raise FerretError.of_field("model.invalid", name, list(tensor.stride()), "is strided; call .contiguous() first")
    return tensor.view(-1)
