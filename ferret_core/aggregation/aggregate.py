"""Aggregation: moves the model one round on by the contributions that pass the filters and guards.

filter     contributions far beyond the round's norm are clipped or rejected; if the specification requests it,
           contributions with a direction different from the others' are rejected too
candidate  the rest is aggregated into an update, which gives the candidate for the next model
guard      a candidate that breaks the model is rolled back and rebuilt without the culprits; a step that raises the
           loss too far is halved
record     the candidate becomes the model, with its record in the ledger and the statistics of its update
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ferret_core.aggregation import projection_noise
from ferret_core.aggregation.candidate import Candidate, CandidateBuilder, reject_culprits
from ferret_core.aggregation.group_sum import GroupSum
from ferret_core.aggregation.loss_guard import LossGuard
from ferret_core.aggregation.projection_noise import ProjectionNoise
from ferret_core.aggregation.selection import Selection, filter_by_cosine, filter_by_norm, summarize
from ferret_core.aggregation.statistics.collector import StatisticsCollector
from ferret_core.aggregation.statistics.schema import UpdateStatistics
from ferret_core.aggregation.step_guard import shorten_step
from ferret_core.ledger.record import LEDGER_VERSION, REASON_LENGTH, GroupRecord, LedgerEntry, LedgerRecord, Signature
from ferret_core.models.parameters import trainable
from ferret_core.protocol.digest import digest_bytes, digest_json
from ferret_core.replica.replica import Contributions, Replica


def record_round(
    replica: Replica,
    experiment: str,
    base_digest: str,
    selection: Selection,
    candidate: Candidate,
    signatures: Sequence[Signature],
    sums: Sequence[GroupSum] = (),
) -> LedgerEntry:
    """Returns the entry of ``replica``'s current round, begun at ``base_digest``; it becomes the replica's ``head``."""
    rejected, factors = selection.rejected, selection.factors
    accepted = [(each.participant, each.digest) for each in selection.accepted]
    refused = [
        (each.participant, each.digest, rejected[each.participant])
        for each in selection.summaries
        if each.participant in rejected
    ]
    groups: tuple[GroupRecord, ...] = ()
    if sums:  # a contribution is a group's mean, and the leaves are its survivors'
        groups = tuple(one.record(factors.get(one.name), rejected.get(one.name)) for one in sums)
        counted = [one.digests for one in sums if one.name not in rejected]
        accepted = sorted(pair for digests in counted for pair in digests.items())
        refused = sorted(
            (name, digest, f"the sum of {one.name} was left out: {rejected[one.name]}"[:REASON_LENGTH])
            for one in sums
            if one.name in rejected
            for name, digest in one.digests.items()
        )
        factors = {}
    record = LedgerRecord(
        version=LEDGER_VERSION,
        experiment=experiment,
        spec=digest_json(replica.spec.model_dump(mode="json")),
        round=replica.round,
        base_digest=base_digest,
        digest=replica.digest,
        update=digest_bytes(candidate.update),
        contributions=tuple(accepted),
        previous=replica.head,
        clipped=tuple((name, factor) for name, factor in factors.items() if name not in rejected),
        refused=tuple(refused),
        signatures=tuple(sorted(signatures)),
        halvings=candidate.halvings,
        groups=groups,
    )
    replica.head = record.hash
    return LedgerEntry(record, replica.head, candidate.update)


class AggregatedRound(NamedTuple):
    """The ledger entry, the noise (None without projection), the update's statistics, and the development metrics."""

    entry: LedgerEntry
    noise: ProjectionNoise | None
    statistics: UpdateStatistics
    metrics: dict[str, float]


def aggregate_round(
    replica: Replica,
    experiment: str,
    contributions: Contributions,
    guard: LossGuard | None = None,
    signatures: Sequence[Signature] = (),
    sums: Sequence[GroupSum] = (),
) -> AggregatedRound:
    """Moves ``replica`` to the next round by the ``contributions`` that pass the filters and guards.

    Without a ``guard`` only non-finite weights break a model. ``signatures`` has the signatures of the signed
    contributions; they go into the record. ``sums`` has the groups' sums, if the contributions are their means.

    Raises ``noise.too_large``, before anything is moved, where random directions would add too much noise. Raises
    ``round.diverged`` where fewer than half of the contributions are left, or where the round breaks the model and no
    culprit is found. The replica is then back at its base, and ``refused``, among the error's members, says by
    participant why its contribution was rejected.
    """
    collector = StatisticsCollector(replica)
    selection = summarize(replica, contributions, collector)

    selection = filter_by_norm(replica, selection)
    selection = filter_by_cosine(replica, selection)
    selection.require_majority()
    noise = projection_noise.of_round(replica, selection.norms, list(selection.shares(replica).values()))

    builder = CandidateBuilder(replica, guard)
    candidate = builder.build(selection)

    selection, candidate = reject_culprits(builder, selection, candidate)
    candidate, metrics = shorten_step(builder, candidate)
    builder.accept(selection, candidate)

    entry = record_round(replica, experiment, builder.base.digest, selection, candidate, signatures, sums)
    before, after, shares = builder.base.weights, trainable(replica.model), selection.shares(replica)
    statistics, noise = collector.describe(before, after, shares, candidate.update, noise, candidate.step)
    return AggregatedRound(entry, noise, statistics, metrics)
