"""``train``: one simulated client's part in one round, under a lease."""

from __future__ import annotations

import logging
from functools import partial

from ferret_core.algorithms._base import Client, LocalUpdate
from ferret_core.cost import LocalCost, measured
from ferret_core.participant import contribute
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.wire import Arrays, decode, encode
from ferret_core.storage import blob_location
from ferret_db.engine import assignments
from ferret_db.repositories import contributions
from ferret_db.tables import Assignment
from worker.context import Context
from worker.lease import Lease

logger = logging.getLogger(__name__)


def train(context: Context, assignment_id: str) -> None:
    """Leases the assignment, trains, and reports; does nothing when there is nothing left to do."""
    seconds = context.settings.lease_seconds
    with context.database.begin() as s:
        assignment = assignments.lease(s, assignment_id, seconds)
    if assignment is None:
        return
    try:
        with Lease(context.database, assignment, seconds) as lease:
            update, cost = _contribute(context, assignment, lease)
        _report(context, assignment, update, cost)
    except FerretError as error:
        if error.code in {"lease.lost", "round.closed"}:
            logger.info("%s: %s", assignment_id, error.detail)
            return
        _reject(context, assignment, error)
    except Exception as error:
        logger.exception("%s failed", assignment_id)
        _reject(context, assignment, FerretError("internal", f"{type(error).__name__}: {error}"))


def _contribute(context: Context, assignment: Assignment, lease: Lease) -> tuple[LocalUpdate, LocalCost]:
    task = RoundTask.model_validate(assignment.task)
    bench = context.bench(task.experiment, task.round - 1)
    client = Client(task, bench.data.shard(task.participant), _recall(context, task), lease.check)
    return measured(partial(contribute, bench.replica, client), context.device)


def _recall(context: Context, task: RoundTask) -> Arrays:
    """What the client kept from the last of its rounds that was committed."""
    with context.database.read() as s:
        digest = contributions.memory_of(s, task.experiment, task.participant)
    return decode(context.storage.read(blob_location("memories", digest), digest))[0] if digest else {}


def _report(context: Context, assignment: Assignment, update: LocalUpdate, cost: LocalCost) -> None:
    contribution, memory = update
    stored = context.storage.put_bytes(contribution.encode(), "contributions")
    kept = context.storage.put_bytes(encode(memory, {}), "memories").digest if memory else None
    with context.database.begin() as s:
        assignments.accept(
            s,
            assignment.id,
            assignment.fence,
            digest=stored.digest,
            size=stored.size,
            meta=contribution.meta,
            cost=cost,
            memory_digest=kept,
        )


def _reject(context: Context, assignment: Assignment, error: FerretError) -> None:
    with context.database.begin() as s:
        assignments.reject(s, assignment.id, assignment.fence, error)
