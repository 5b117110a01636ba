"""``train``: one simulated client's part in one round, under a lease."""

from __future__ import annotations

import logging
import time

from ferret_core.participant import contribute
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.wire import Contribution
from ferret_db.engine import assignments
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
    started = time.monotonic()
    try:
        with Lease(context.database, assignment, seconds) as lease:
            contribution = _contribute(context, assignment, lease)
        _report(context, assignment, contribution, time.monotonic() - started)
    except FerretError as error:
        if error.code in {"lease.lost", "round.closed"}:
            logger.info("%s: %s", assignment_id, error.detail)
            return
        _reject(context, assignment, error)
    except Exception as error:
        logger.exception("%s failed", assignment_id)
        _reject(context, assignment, FerretError("internal", f"{type(error).__name__}: {error}"))


def _contribute(context: Context, assignment: Assignment, lease: Lease) -> Contribution:
    task = RoundTask.model_validate(assignment.task)
    bench = context.bench(task.experiment, task.round - 1)
    return contribute(bench.replica, bench.data.shard(task.participant), task, lease.check)


def _report(context: Context, assignment: Assignment, contribution: Contribution, seconds: float) -> None:
    stored = context.storage.put_bytes(contribution.encode(), "contributions")
    with context.database.begin() as s:
        assignments.accept(
            s,
            assignment.id,
            assignment.fence,
            digest=stored.digest,
            size=stored.size,
            meta=contribution.meta,
            seconds=seconds,
        )


def _reject(context: Context, assignment: Assignment, error: FerretError) -> None:
    with context.database.begin() as s:
        assignments.reject(s, assignment.id, assignment.fence, error)
