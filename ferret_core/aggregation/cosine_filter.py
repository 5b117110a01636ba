"""The cosine filter: rejects an update with a direction that differs from the others'.

After Cao et al., "FLTrust: Byzantine-robust Federated Learning via Trust Bootstrapping", NDSS 2021,
https://arxiv.org/abs/2012.13995, who compare each update's direction with that of trusted data; here it is compared
with the others':

    Δ = Σ wᵢ Δᵢ, weights w that sum to 1;  Rᵢ = Δ − wᵢ Δᵢ, what the others send
    aᵢ = ⟨Δᵢ, Rᵢ⟩ / (‖Δᵢ‖ ‖Rᵢ‖)
    aᵢ < min_cosine_share · median(a): the contribution is rejected, the least first, at most a third of all

Directions drawn at random have a cosine of 1/√d in d dimensions. If the median is not above ``CLEAR`` times that,
nothing is rejected: the data differ too much, or the sketches are too small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from ferret_core.aggregation.selection import Selection
from ferret_core.protocol.spec import RobustSpec
from ferret_core.replica.replica import Replica
from ferret_core.server.norm_clipping import MEDIAN_OF, lower_median

CLEAR = 4.0
Tensors = Mapping[str, torch.Tensor]


def filter_by_cosine(replica: Replica, selection: Selection) -> Selection:
    """Returns the selection without the outliers; unchanged under another rule, or if too few contributions count."""
    accepted = selection.accepted
    if replica.spec.robust.rule != "cosine_filter" or len(accepted) < MEDIAN_OF:
        return selection
    shares = replica.shares([each.examples for each in accepted])
    mean = replica.displacement(selection.read(), selection.factors)
    cosines = [
        cosine_with_others(replica.displacement([sealed], selection.factors), mean, share)
        for share, sealed in zip(shares, selection.read(), strict=True)
    ]
    size = sum(math.prod(shape) for shape in replica.shapes.values())
    outliers = find_outliers(replica.spec.robust, cosines, size)
    return selection.reject({accepted[position].participant: reason for position, reason in outliers.items()})


def cosine_with_others(update: Tensors, mean: Tensors, share: float) -> float:
    """Returns aᵢ in fp64, from Δᵢ, Δ and wᵢ; 0 if the participant's update or the sum of the others' is zero."""
    cross, square = dot(update, mean), dot(update, update)
    others = dot(mean, mean) - 2 * share * cross + share**2 * square
    length = math.sqrt(max(square, 0.0) * max(others, 0.0))
    return (cross - share * square) / length if length else 0.0


def find_outliers(spec: RobustSpec, cosines: Sequence[float], size: int) -> dict[int, str]:
    """Returns the positions to reject, with reasons; ``size`` is d, the number of tuned weights."""
    median = float(lower_median(np.array(cosines)))
    if median <= CLEAR / math.sqrt(size):
        return {}
    least_first = sorted(range(len(cosines)), key=lambda position: cosines[position])
    return {
        position: f"its cosine with the others is {cosines[position]:.3g}, less than robust.min_cosine_share = "
        f"{spec.min_cosine_share:g} times the round's median of {median:.3g}"
        for position in least_first[: len(cosines) // 3]
        if cosines[position] < spec.min_cosine_share * median
    }


@torch.no_grad()
def dot(left: Tensors, right: Tensors) -> float:
    """Returns ⟨left, right⟩ over all parameters, summed in fp64 over parameters."""
    return math.fsum(float(torch.sum(left[name] * right[name], dtype=torch.float64)) for name in left)
