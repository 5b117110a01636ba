"""``aggregate``: folds a frozen round into the next model: a pure function of the frozen set that anyone may redo."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

from ferret_core import federation
from ferret_core.cost import LocalCost, numbers_sent, round_cost
from ferret_core.ledger import LedgerRecord
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import RoundState
from ferret_core.protocol.wire import Contribution
from ferret_core.storage import Storage, blob_location
from ferret_db import tables
from ferret_db.engine import lifecycle
from ferret_db.engine import rounds as round_engine
from ferret_db.repositories import contributions, ledger, rounds
from worker import checkpoints
from worker.context import Bench, Context

logger = logging.getLogger(__name__)


def aggregate(context: Context, round_id: str) -> None:
    """Reconstructs, moves and stores the model, then commits; does nothing unless the round is frozen."""
    with context.database.read() as s:
        round_ = rounds.get(s, round_id)
        frozen = contributions.of_round(s, round_id)
    if round_.state != RoundState.FROZEN:
        return
    try:
        bench = context.bench(round_.experiment_id, round_.number - 1)
        _fold_and_commit(context, bench, round_, frozen)
    except FerretError as error:
        context.drop(round_.experiment_id)
        logger.warning("round %d of %s failed: %s", round_.number, round_.experiment_id, error.detail)
        with context.database.begin() as s:
            lifecycle.fail(s, round_.experiment_id, error)
    except BaseException:
        context.drop(round_.experiment_id)
        raise


def _fold_and_commit(context: Context, bench: Bench, round_: tables.Round, frozen: list[tables.Contribution]) -> None:
    replica, experiment_id = bench.replica, round_.experiment_id
    record, update, cost = _fold(context, bench, round_, frozen)
    stored = context.storage.put_bytes(update, "updates")
    due = federation.checkpoint_due(replica.spec, round_.number)
    files = checkpoints.store(context.storage, replica, experiment_id) if due else []
    with context.database.begin() as s:
        round_engine.commit_round(
            s,
            round_.id,
            digest=record.digest,
            record=record.model_dump(mode="json"),
            record_hash=record.hash,
            update_digest=stored.digest,
            update_size=stored.size,
            artifacts=files,
            metrics=federation.mean_metrics({one.participant: one.metrics for one in frozen}) | cost,
        )


def _fold(
    context: Context, bench: Bench, round_: tables.Round, frozen: list[tables.Contribution]
) -> tuple[LedgerRecord, bytes, dict[str, float]]:
    """Moves the bench's model on: the ledger's record, the update, and what the round cost."""
    previous = _previous_hash(context, round_.experiment_id, round_.number)
    up, down = list[int](), bench.replica.numbers

    def counted() -> Iterator[tuple[str, Contribution]]:
        for digest, contribution in _streamed(context.storage, frozen):
            up.append(numbers_sent(contribution))
            yield digest, contribution

    begin = time.perf_counter()
    record, update = bench.replica.fold(round_.experiment_id, counted(), previous)
    seconds = time.perf_counter() - begin
    local = [LocalCost(**one.cost) for one in frozen if one.cost is not None]
    return record, update, round_cost(local, seconds, up, down)


def _previous_hash(context: Context, experiment_id: str, number: int) -> str:
    with context.database.read() as s:
        return ledger.get(s, experiment_id, number - 1).hash if number > 1 else ""


def _streamed(storage: Storage, frozen: list[tables.Contribution]) -> Iterator[tuple[str, Contribution]]:
    """The frozen contributions in participant order, one in memory at a time, each checked against its digest."""
    for one in sorted(frozen, key=lambda one: one.participant):
        yield one.digest, Contribution.decode(storage.read(blob_location("contributions", one.digest), one.digest))
