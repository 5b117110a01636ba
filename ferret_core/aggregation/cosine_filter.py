"""Agreement: whether a participant's update points where the others' do.

After Cao et al., "FLTrust: Byzantine-robust Federated Learning via Trust Bootstrapping", NDSS 2021,
https://arxiv.org/abs/2012.13995, who compare each update's direction with that of trusted data; here with the others':

    Δ = Σ wᵢ Δᵢ, weights w that sum to 1;  Rᵢ = Δ − wᵢ Δᵢ, what the others send
    aᵢ = ⟨Δᵢ, Rᵢ⟩ / (‖Δᵢ‖ ‖Rᵢ‖)
    aᵢ < agree · median(a): the contribution is left out, the least first, at most a third of all

Directions drawn at random agree by 1/√d in d dimensions. Where the median is not beyond ``CLEAR`` times that, nobody
can be told from the others and nobody is left out: the data differ too much, or the sketches are too small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from ferret_core.protocol.spec import RobustSpec
from ferret_core.server.norm_clipping import lower_median

CLEAR = 4.0
Tensors = Mapping[str, torch.Tensor]


def agreement(own: Tensors, together: Tensors, share: float) -> float:
    """aᵢ in fp64, of Δᵢ, Δ and wᵢ; 0 for a participant that moves nothing, or where the others move nothing."""
    cross, square = dot(own, together), dot(own, own)
    others = dot(together, together) - 2 * share * cross + share**2 * square
    length = math.sqrt(max(square, 0.0) * max(others, 0.0))
    return (cross - share * square) / length if length else 0.0


def outsiders(spec: RobustSpec, agreements: Sequence[float], size: int) -> dict[int, str]:
    """The positions of those left out, and why; ``size`` is d, the number of tuned weights."""
    median = float(lower_median(np.array(agreements)))
    if median <= CLEAR / math.sqrt(size):
        return {}
    least_first = sorted(range(len(agreements)), key=lambda position: agreements[position])
    return {
        position: f"it agrees with the others by {agreements[position]:.3g}, less than robust.agree = {spec.agree:g} "
        f"times the round's median of {median:.3g}"
        for position in least_first[: len(agreements) // 3]
        if agreements[position] < spec.agree * median
    }


@torch.no_grad()
def dot(left: Tensors, right: Tensors) -> float:
    """⟨left, right⟩ over all parameters, summed in fp64 over parameters."""
    return math.fsum(float(torch.sum(left[name] * right[name], dtype=torch.float64)) for name in left)
