"""``aggregate``: makes the next model of a frozen round, a pure function of the frozen set that anyone can redo."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from sqlalchemy.orm import Session

from ferret_core.aggregation.aggregate import aggregate_round
from ferret_core.aggregation.group_sum import GroupSum, task_of
from ferret_core.aggregation.masked_sum import origin_of, require_roster, sum_of
from ferret_core.aggregation.noised_sum import noised_mean, noised_sum
from ferret_core.aggregation.statistics.schema import UpdateStatistics
from ferret_core.ledger.record import LedgerEntry, Signature
from ferret_core.privacy.accounting import epsilon_of
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, RoundTask
from ferret_core.protocol.states import RoundState, SumStage
from ferret_core.replica.replica import Replica
from ferret_core.rounds import sampling
from ferret_core.rounds.cost import LocalCost, numbers_sent, round_cost
from ferret_core.storage import FileKind, Storage, blob_location
from ferret_core.system.device import memory_checked
from ferret_core.system.failpoints import failpoint
from ferret_db import tables
from ferret_db.engine import lifecycle, secure_sums
from ferret_db.engine import rounds as round_engine
from ferret_db.engine.file_integrity import is_intact
from ferret_db.engine.task_attempts import REFUSED, TRANSIENT
from ferret_db.repositories import assignments, contributions, experiments, rounds
from ferret_runtime import tracing
from ferret_worker.coordinate import advance
from ferret_worker.repair import repaired
from ferret_worker.storage import FrozenContributions, store_checkpoint, view_contributions
from ferret_worker.worker_state import CancellationCheck, LoadedExperiment, WorkerState

logger = logging.getLogger(__name__)


def aggregate(context: WorkerState, round_id: str) -> None:
    """Reconstructs, moves and stores the model, then commits. Does nothing unless the round is frozen.

    An error that follows from the frozen set fails the experiment. If the set is permanently damaged, the round is
    retried. Raises temporary errors, such as a full disk or a bug, and, between two contributions, the errors that stop
    unneeded or transferable work. A round that another worker has committed meanwhile is not an error.
    """
    with context.database.read() as s:
        round_ = rounds.get(s, round_id)
        frozen = contributions.of_round(s, round_id)
    if round_.state != RoundState.FROZEN or round_.stage not in {None, SumStage.SUM}:
        return
    failpoint("aggregate.begun")
    current = False
    try:
        with memory_checked("use a smaller model, or a machine with more memory"):
            current = repaired(context, round_.experiment_id, lambda: _aggregate_and_commit(context, round_, frozen))
    except FerretError as error:
        if error.code in REFUSED | TRANSIENT:
            raise
        context.database.transact(partial(_end_by(context, error, frozen), round_id=round_id, error=error))
    finally:
        if not current:  # half moved, or moved to another model than the committed one
            context.drop(round_.experiment_id)


def _end_by(context: WorkerState, error: FerretError, frozen: list[tables.Contribution]) -> Callable[..., None]:
    """Returns the transition for an error: the round is undone or given up, or the experiment fails."""
    if error.code == "round.diverged":
        return round_engine.undo
    if error.code.startswith("secure."):  # the sum is repeated with fresh keys
        return round_engine.give_up
    return round_engine.give_up if _is_lost(context.storage, frozen) else _fail


def _is_lost(storage: Storage, frozen: list[tables.Contribution]) -> bool:
    """Returns True if a contribution is damaged: at this point it cannot be restored."""
    return not all(is_intact(storage, blob_location(FileKind.CONTRIBUTION, row.digest), row.digest) for row in frozen)


def _fail(s: Session, round_id: str, error: FerretError) -> None:
    experiments.lock(s, rounds.get(s, round_id).experiment_id)
    round_ = rounds.get(s, round_id)
    if round_.state == RoundState.FROZEN:
        logger.warning("round %d of %s failed: %s", round_.number, round_.experiment_id, error.detail)
        lifecycle.fail(s, round_.experiment_id, error)


def _aggregate_and_commit(context: WorkerState, round_: tables.Round, frozen: list[tables.Contribution]) -> bool:
    """Returns True if the kept model is now the round's, whichever worker committed it."""
    experiment_id = round_.experiment_id
    kept = context.model_at(experiment_id, round_.number - 1)
    replica = kept.replica
    with tracing.span("aggregate_round", algorithm=replica.spec.algorithm.name, contributions=len(frozen)) as note:
        sums = _sums(context, replica, round_, frozen)
        entry, metrics, statistics = _aggregate(context, kept, round_, frozen, sums)
        note(bytes=len(entry.update))
    metrics |= _privacy(context, experiment_id, replica.spec)
    record = entry.record
    accepted = {participant for participant, _ in record.contributions}
    reported = {row.participant: row.metrics for row in frozen if row.participant in accepted}
    if sums:
        counted = {group.name for group in record.groups if group.refused is None}
        reported = {one.name: one.sealed.meta.metrics for one in sums if one.name in counted}
    failpoint("aggregate.computed")
    context.storage.put_bytes(entry.update, FileKind.UPDATE, record.update)
    failpoint("aggregate.stored")
    due = sampling.checkpoint_due(replica.spec, round_.number)
    files = store_checkpoint(context.storage, replica, experiment_id) if due else []
    failpoint("aggregate.written")

    def commit(s: Session) -> bool:
        committed = round_engine.commit_round(
            s,
            round_.id,
            digest=record.digest,
            record=record.model_dump(mode="json"),
            record_hash=entry.hash,
            update_digest=record.update,
            update_size=len(entry.update),
            artifacts=files,
            metrics=sampling.mean_metrics(reported) | metrics,
            absurd=sampling.implausible_metrics(reported),
            inside=statistics.model_dump(mode="json"),
            transcripts=[one.transcript.model_dump(mode="json") for one in sums if one.transcript is not None],
        )
        if committed:
            advance(s, experiment_id)  # opens the next round immediately, without waiting for a message
        return committed

    committed = context.database.transact(commit)
    failpoint("aggregate.committed")
    return committed or _committed_digest(context, round_.id) == record.digest


def _privacy(context: WorkerState, experiment_id: str, spec: ExperimentSpec) -> dict[str, float]:
    """Returns the largest ε that a participant can have spent; nothing without dp-accounting or protected records."""
    privacy = spec.privacy
    if not privacy.of_records or privacy.noise_multiplier is None:
        return {}
    with context.database.read() as s:
        releases = rounds.attempts(s, experiment_id)
    with suppress(FerretError):
        return {"epsilon": epsilon_of(privacy.rate, privacy.noise_multiplier, releases, privacy.delta)}
    return {}


def _sums(
    context: WorkerState, replica: Replica, round_: tables.Round, frozen: list[tables.Contribution]
) -> list[GroupSum]:
    """Returns the sum of each group's contributions; none if the server uses each of them."""
    if replica.spec.privacy.central:
        return [_noised(context, replica, round_, frozen)]
    return [] if round_.stage is None else _unmasked(context, replica, round_, frozen)


def _unmasked(
    context: WorkerState, replica: Replica, round_: tables.Round, frozen: list[tables.Contribution]
) -> list[GroupSum]:
    with context.database.read() as s:
        transcripts = [group.transcript() for group in secure_sums.groups_of(s, round_)]
    found = list[GroupSum]()
    for transcript in transcripts:
        roster = transcript.roster
        task = task_of(replica, round_.experiment_id, roster.origin.attempt, roster.names[0])
        require_roster(replica, roster, origin_of(replica, task, roster.origin.attempt))
        digests = {row.participant: row.digest for row in frozen if row.participant in roster.names}
        masked = view_contributions(context.storage, digests)
        found.append(sum_of(replica, round_.experiment_id, transcript, masked))
    return found


def _noised(
    context: WorkerState, replica: Replica, round_: tables.Round, frozen: list[tables.Contribution]
) -> GroupSum:
    """Returns the sum with the noise that the first aggregation of the round drew and stored."""
    with context.database.read() as s:
        noised = rounds.noised_sum(s, round_.id)
        task = RoundTask.model_validate(assignments.get(s, frozen[0].assignment_id).task)
    digests = {row.participant: row.digest for row in frozen}
    if noised is None:
        drawn = noised_sum(replica, task, view_contributions(context.storage, digests).values())
        noised = context.database.transact(partial(round_engine.keep_noised_sum, round_id=round_.id, body=drawn))
    return noised_mean(replica, task, round_.attempt, noised, digests)


def _aggregate(
    context: WorkerState,
    kept: LoadedExperiment,
    round_: tables.Round,
    frozen: list[tables.Contribution],
    sums: list[GroupSum],
) -> tuple[LedgerEntry, dict[str, float], UpdateStatistics]:
    """Moves the replica. Returns ledger entry, cost with the guard's measurements, and update statistics."""
    replica, down = kept.replica, kept.replica.numbers
    watch = CancellationCheck(context, round_.experiment_id)
    digests = {} if sums else {row.participant: row.digest for row in frozen}
    received = FrozenContributions(context.storage, digests, watch.check)
    sent = [one.sealed for one in sums] or received
    begin = time.perf_counter()
    entry, noise, statistics, measured = aggregate_round(
        replica, round_.experiment_id, sent, kept.guard, _signatures(frozen), sums
    )
    seconds = time.perf_counter() - begin
    added = noise.metrics(by_block=replica.round == 1) if noise else {}
    local = [LocalCost(**row.cost) for row in frozen if row.cost is not None]
    up = [numbers_sent(one.sealed.contribution) for one in sums] or list(received.numbers.values())
    return entry, round_cost(local, seconds, up, down) | added | measured, statistics


def _signatures(frozen: list[tables.Contribution]) -> list[Signature]:
    return [
        Signature(row.participant, row.public_key, row.assignment_id, row.signature)
        for row in frozen
        if row.public_key is not None and row.signature is not None
    ]


def _committed_digest(context: WorkerState, round_id: str) -> str | None:
    with context.database.read() as s:
        return rounds.get(s, round_id).digest
