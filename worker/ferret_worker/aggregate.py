"""``aggregate``: makes the next model of a frozen round, a pure function of the frozen set that anyone can redo."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial

from sqlalchemy.orm import Session

from ferret_core.aggregation.aggregate import aggregate_round
from ferret_core.aggregation.statistics.schema import UpdateStatistics
from ferret_core.ledger.record import LedgerEntry, Signature
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import RoundState
from ferret_core.replica import tail_averaging
from ferret_core.rounds import sampling
from ferret_core.rounds.cost import LocalCost, round_cost
from ferret_core.storage import FileKind, Storage, blob_location
from ferret_core.system.device import memory_checked
from ferret_core.system.failpoints import failpoint
from ferret_db import tables
from ferret_db.engine import lifecycle
from ferret_db.engine import rounds as round_engine
from ferret_db.engine.file_integrity import is_intact
from ferret_db.engine.task_attempts import REFUSED, TRANSIENT
from ferret_db.repositories import contributions, experiments, rounds
from ferret_runtime import tracing
from ferret_worker.coordinate import advance
from ferret_worker.repair import repaired
from ferret_worker.storage import FrozenContributions, store_checkpoint
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
    if round_.state != RoundState.FROZEN:
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
    kept = context.model_at(experiment_id, round_.number - 1, averaged=True)
    replica = kept.replica
    with tracing.span("aggregate_round", algorithm=replica.spec.algorithm.name, contributions=len(frozen)) as note:
        entry, metrics, statistics = _aggregate(context, kept, round_, frozen)
        note(bytes=len(entry.update))
    record = entry.record
    accepted = {participant for participant, _ in record.contributions}
    reported = {row.participant: row.metrics for row in frozen if row.participant in accepted}
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
        )
        if committed:
            advance(s, experiment_id)  # opens the next round immediately, without waiting for a message
        return committed

    committed = context.database.transact(commit)
    failpoint("aggregate.committed")
    return committed or _committed_digest(context, round_.id) == record.digest


def _aggregate(
    context: WorkerState, kept: LoadedExperiment, round_: tables.Round, frozen: list[tables.Contribution]
) -> tuple[LedgerEntry, dict[str, float], UpdateStatistics]:
    """Moves the replica. Returns ledger entry, cost with the guard's measurements, and update statistics."""
    replica, down = kept.replica, kept.replica.numbers
    watch = CancellationCheck(context, round_.experiment_id)
    received = FrozenContributions(context.storage, {row.participant: row.digest for row in frozen}, watch.check)
    begin = time.perf_counter()
    entry, noise, statistics, measured = aggregate_round(
        replica, round_.experiment_id, received, kept.guard, _signatures(frozen)
    )
    seconds = time.perf_counter() - begin
    if kept.average is not None:
        kept.average.update(replica)
    measured |= tail_averaging.development_loss(kept.average, replica, kept.guard.loss)
    added = noise.metrics(by_block=replica.round == 1) if noise else {}
    local = [LocalCost(**row.cost) for row in frozen if row.cost is not None]
    return entry, round_cost(local, seconds, list(received.numbers.values()), down) | added | measured, statistics


def _signatures(frozen: list[tables.Contribution]) -> list[Signature]:
    return [
        Signature(row.participant, row.public_key, row.assignment_id, row.signature)
        for row in frozen
        if row.public_key is not None and row.signature is not None
    ]


def _committed_digest(context: WorkerState, round_id: str) -> str | None:
    with context.database.read() as s:
        return rounds.get(s, round_id).digest
