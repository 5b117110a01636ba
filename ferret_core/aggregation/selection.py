"""A round's contributions, and the selection of the ones that count."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ferret_core.aggregation.statistics.collector import StatisticsCollector
from ferret_core.algorithms.configs._norms import Norms
from ferret_core.contribution import SealedContribution
from ferret_core.protocol.errors import FerretError
from ferret_core.replica.replica import Contributions, Replica


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
