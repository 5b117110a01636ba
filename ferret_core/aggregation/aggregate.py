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
from ferret_core.aggregation.candidate import CandidateBuilder
from ferret_core.aggregation.cosine_filter import filter_by_cosine
from ferret_core.aggregation.culprits import reject_culprits
from ferret_core.aggregation.loss_guard import LossGuard
from ferret_core.aggregation.norm_filter import filter_by_norm
from ferret_core.aggregation.projection_noise import ProjectionNoise
from ferret_core.aggregation.round_record import record_round
from ferret_core.aggregation.selection import summarize
from ferret_core.aggregation.statistics.collector import StatisticsCollector
from ferret_core.aggregation.statistics.schema import UpdateStatistics
from ferret_core.aggregation.step_guard import shorten_step
from ferret_core.ledger.record import LedgerEntry, Signature
from ferret_core.models.parameters import trainable
from ferret_core.replica.replica import Contributions, Replica


class AggregatedRound(NamedTuple):
    """Result of an aggregation: the ledger entry, the noise (None without projection), the update's statistics, and
    the metrics on development sequences.
    """

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
) -> AggregatedRound:
    """Moves ``replica`` to the next round by the ``contributions`` that pass the filters and guards.

    Without a ``guard`` only non-finite weights break a model. ``signatures`` has the signatures of the signed
    contributions; they go into the record.

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

    entry = record_round(replica, experiment, builder.base.digest, selection, candidate, signatures)
    before, after, shares = builder.base.weights, trainable(replica.model), selection.shares(replica)
    statistics, noise = collector.describe(before, after, shares, candidate.update, noise, candidate.step)
    return AggregatedRound(entry, noise, statistics, metrics)
