"""A round's contributions, and the selection of the ones that count: by their norms
(:mod:`ferret_core.server.norm_clipping`) and by their directions.

The cosine filter rejects an update with a direction that differs from the others', after Cao et al., "FLTrust:
Byzantine-robust Federated Learning via Trust Bootstrapping", NDSS 2021, https://arxiv.org/abs/2012.13995, who compare
each update's direction with that of trusted data; here it is compared with the others':

    Δ = Σ wᵢ Δᵢ, weights w that sum to 1;  Rᵢ = Δ − wᵢ Δᵢ, what the others send
    aᵢ = ⟨Δᵢ, Rᵢ⟩ / (‖Δᵢ‖ ‖Rᵢ‖)
    aᵢ < min_cosine_share · median(a): the contribution is rejected, the least first, at most a third of all

Updates drawn at random have a cosine of 1/√n in n dimensions: d, or fewer where participants share directions. If the
median is not above ``CLEAR`` times that, nothing is rejected: the data differ too much, or the sketches are too small.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import torch

from ferret_core.aggregation.statistics.collector import StatisticsCollector
from ferret_core.algorithms.configs.norms import Norms
from ferret_core.contribution import SealedContribution
from ferret_core.models.parameters import weights_norm
from ferret_core.models.shapes import count
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RobustSpec
from ferret_core.replica.replica import Contributions, Replica
from ferret_core.server.norm_clipping import MEDIAN_OF, check_norms, lower_median

CLEAR = 4.0
Tensors = Mapping[str, torch.Tensor]


class ContributionSummary(NamedTuple):
    """Data of a contribution that is kept between readings."""

    participant: str
    digest: str
    examples: int
    norms: Norms


@dataclass(frozen=True)
class Selection:
    """The contributions of round ``round`` that count, and their weights.

    ``summaries`` has all contributions, in participant order. ``factors`` has the factors of clipped contributions, and
    ``rejected`` the reasons of rejected ones, both by participant.
    """

    round: int
    contributions: Contributions
    summaries: tuple[ContributionSummary, ...]
    factors: Mapping[str, float] = field(default_factory=dict)
    rejected: Mapping[str, str] = field(default_factory=dict)

    @property
    def accepted(self) -> list[ContributionSummary]:
        """Summaries of the contributions that count."""
        return [each for each in self.summaries if each.participant not in self.rejected]

    @property
    def norms(self) -> list[Norms]:
        """Norms of the contributions that count."""
        return [each.norms for each in self.accepted]

    def reject(self, reasons: Mapping[str, str]) -> Selection:
        """Returns the selection without these participants."""
        return replace(self, rejected={**self.rejected, **reasons})

    def read(self, excluded: Collection[str] = ()) -> Contributions:
        """Returns the contributions that count, without the ``excluded`` participants."""
        return _Excluding(self.contributions, {*self.rejected, *excluded})

    def shares(self, replica: Replica) -> dict[str, float]:
        """Returns, by participant, the weight in the mean of each contribution that counts; clipping lowers it."""
        shares = replica.shares([each.examples for each in self.accepted])
        return {
            each.participant: share * self.factors.get(each.participant, 1.0)
            for each, share in zip(self.accepted, shares, strict=True)
        }

    def require_majority(self) -> None:
        """Raises ``round.diverged`` where fewer than half of the contributions count."""
        left, total = len(self.accepted), len(self.summaries)
        if 2 * left < total:
            why = next(iter(self.rejected.values()))
            raise self.exploded(f"only {left} of {total} contributions are within bounds; of the first, {why}")

    def exploded(self, reason: str) -> FerretError:
        """Returns the error of a round that is rolled back."""
        return FerretError(
            "round.diverged",
            f"round {self.round} was rolled back: {reason}; lower server.learning_rate or the local learning rate if "
            "no participant is to blame",
            members={"refused": dict(self.rejected)},
        )


def summarize(replica: Replica, contributions: Contributions, collector: StatisticsCollector) -> Selection:
    """Summarises all ``contributions``; each is read once, here and by the ``collector``."""
    config = replica.experiment.config

    def summary(sealed: SealedContribution) -> ContributionSummary:
        collector.see(sealed.contribution)
        norms = config.norms(sealed.contribution, replica.shapes)
        return ContributionSummary(sealed.meta.participant, sealed.digest, sealed.meta.examples, norms)

    return Selection(replica.round + 1, contributions, tuple(summary(sealed) for sealed in contributions))


class _Excluding:
    """The contributions of all but some participants, read again on each iteration."""

    def __init__(self, contributions: Contributions, excluded: set[str]) -> None:
        self._contributions = contributions
        self._excluded = excluded

    def __iter__(self) -> Iterator[SealedContribution]:
        return (sealed for sealed in self._contributions if sealed.meta.participant not in self._excluded)


def filter_by_norm(replica: Replica, selection: Selection) -> Selection:
    """Returns the selection with the factors of clipped contributions and without rejected ones."""
    robust = replica.spec.robust
    if replica.experiment.traits.counts_whole:
        robust = robust.model_copy(update={"rule": "none"})
    verdicts = check_norms(robust, selection.norms, weights_norm(replica.model))
    by_name = {each.participant: verdict for each, verdict in zip(selection.accepted, verdicts, strict=True)}
    factors = {name: verdict.factor for name, verdict in by_name.items() if verdict.factor != 1}
    rejected = {name: verdict.rejected for name, verdict in by_name.items() if verdict.rejected is not None}
    return replace(selection, factors=factors).reject(rejected)


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
    shared = replica.experiment.traits.directions
    dimensions = count(replica.shapes) if shared is None else shared(replica.shapes)
    outliers = find_outliers(replica.spec.robust, cosines, dimensions)
    return selection.reject({accepted[position].participant: reason for position, reason in outliers.items()})


def cosine_with_others(update: Tensors, mean: Tensors, share: float) -> float:
    """Returns aᵢ in fp64, from Δᵢ, Δ and wᵢ; 0 if the participant's update or the sum of the others' is zero."""
    cross, square = dot(update, mean), dot(update, update)
    others = dot(mean, mean) - 2 * share * cross + share**2 * square
    length = math.sqrt(max(square, 0.0) * max(others, 0.0))
    return (cross - share * square) / length if length else 0.0


def find_outliers(spec: RobustSpec, cosines: Sequence[float], dimensions: int) -> dict[int, str]:
    """Returns the positions to reject, with reasons; ``dimensions`` is n."""
    median = float(lower_median(np.array(cosines)))
    if median <= CLEAR / math.sqrt(dimensions):
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
