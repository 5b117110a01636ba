"""The sum of a group of participants, which enters the aggregation as one contribution: their mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from ferret_core.aggregation.dense_sums import DenseSums
from ferret_core.aggregation.record_sums import RecordSums
from ferret_core.algorithms.base import FederatedAlgorithm, SummableContributions
from ferret_core.catalog import ResolvedExperiment
from ferret_core.contribution import SealedContribution
from ferret_core.ledger.record import GroupRecord
from ferret_core.protocol.digest import digest_pieces
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.wire import FORMAT_VERSION, Contribution, ContributionMeta
from ferret_core.replica.replica import Replica
from ferret_core.rounds import sampling
from ferret_core.secure.packing import Vector
from ferret_core.secure.transcript import Transcript


class GroupSum(NamedTuple):
    """A group's mean, as a contribution, with the digests of what its survivors sent, by name.

    ``transcript`` is None if the server reads each contribution. ``releases`` counts the attempts at the round, which
    all cost the members' records privacy; None unless noise protects records. ``bytes_up`` is the sum of the bytes that
    the members sent, if known.
    """

    sealed: SealedContribution
    members: tuple[str, ...]
    digests: Mapping[str, str]
    transcript: Transcript | None
    releases: int | None
    bytes_up: int = 0

    @property
    def name(self) -> str:
        """Name of the group in the ledger."""
        return self.sealed.meta.participant

    def record(self, factor: float | None, refused: str | None = None) -> GroupRecord:
        """Returns the group's entry in the ledger; ``factor`` is that of its update, if it was shortened, ``refused``
        the reason why it was left out."""
        return GroupRecord(
            name=self.name,
            members=self.members,
            survivors=tuple(sorted(self.digests)),
            sum=self.sealed.digest,
            transcript=None if self.transcript is None else self.transcript.digest,
            clipped=None if refused else factor,
            refused=refused,
            releases=self.releases,
        )


def summation(replica: Replica, members: int) -> SummableContributions:
    """Returns the sums to the ``replica``'s next round of contributions of ``members`` participants."""
    return summation_of(replica.experiment, replica.algorithm, members, replica.round + 1)


def summation_of(
    experiment: ResolvedExperiment, algorithm: FederatedAlgorithm, members: int, number: int
) -> SummableContributions:
    """Returns the sums to round ``number`` of contributions of ``members`` participants."""
    if experiment.spec.privacy.of_records:
        return RecordSums(experiment, members, number)
    if experiment.traits.dense:
        return DenseSums(experiment.spec.secure.clip, members)
    return cast(SummableContributions, algorithm)


def task_of(
    replica: Replica, experiment: str, attempt: int, participant: str, population: int | None = None
) -> RoundTask:
    """Returns the ``participant``'s task in an attempt at the ``replica``'s next round."""
    number, base = replica.round + 1, replica.digest
    (task,) = sampling.round_tasks(replica.spec, experiment, number, [participant], base, population, attempt)
    return task


def seal_mean(
    replica: Replica, task: RoundTask, sums: Vector, members: int, survivors: int, group: int = 1
) -> SealedContribution:
    """Returns the contribution of a ``group``: the mean of its ``survivors``, with their number for its examples.

    ``members`` is the number that the sums have room for, ``task`` that of any member.
    """
    mean = summation(replica, members).mean(replica.state, sums, survivors, replica.shapes)
    fields: dict[str, Any] = {"seed": task.round_seed, **mean.basis_fields}
    meta = ContributionMeta(
        format=FORMAT_VERSION,
        experiment=task.experiment,
        round=task.round,
        participant=f"group-{group}",
        algorithm=replica.spec.algorithm.name,
        base_digest=task.base_digest,
        examples=survivors,
        metrics=dict(mean.metrics),
        **fields,
    )
    contribution = Contribution(meta, mean.arrays)
    pieces = contribution.pieces()
    return SealedContribution(pieces, digest_pieces(pieces), contribution)
