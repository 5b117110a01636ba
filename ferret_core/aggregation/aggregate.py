"""Aggregation: moves the model one round on, by those of the round's contributions that do it no harm.

filter     contributions whose norm is far beyond the round's are clipped or rejected; so, if the specification asks for
           it, are those whose direction differs from the others'
candidate  the rest is aggregated into an update, which gives the candidate for the next model
guard      a candidate that breaks the model is rolled back, and made again without the culprits; a step that raises the
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
    """A round's entry in the ledger; its noise, where its updates were projected; the statistics of its update; and, by
    metric, what was measured on development sequences."""

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
    """Moves ``replica`` to the next round by those of the ``contributions`` that do it no harm.

    Without a ``guard`` only weights that are not finite break a model. ``signatures`` are those of the contributions
    that are signed, and go into the record.

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
