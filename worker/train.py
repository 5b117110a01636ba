"""``train``: one simulated client's part in one round, under a lease."""

from __future__ import annotations

from functools import partial

from ferret_core.algorithms._base import Client, LocalUpdate
from ferret_core.cost import LocalCost, measured
from ferret_core.failpoints import failpoint
from ferret_core.participant import contribute
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.wire import encode
from ferret_db.engine import assignments
from ferret_db.engine.tasks import REFUSED, TRANSIENT
from ferret_db.tables import Assignment
from worker.context import Context
from worker.lease import Lease
from worker.repair import mended, recall


def train(context: Context, assignment_id: str) -> None:
    """Leases the assignment, trains, and reports; does nothing when there is nothing left to do.

    What is wrong with the work itself ends the assignment with that reason. Raises what is not: a lost lease, a worker
    that stops, a full disk, a bug.
    """
    seconds = context.settings.lease_seconds
    assignment = context.database.transact(lambda s: assignments.lease(s, assignment_id, seconds))
    if assignment is None:
        return
    failpoint("train.leased")
    try:
        with Lease(context.database, assignment, seconds, lambda: context.stopping) as lease:
            update, cost = _contribute(context, assignment, lease)
        failpoint("train.trained")
        _report(context, assignment, update, cost)
        failpoint("train.reported")
    except FerretError as error:
        _end(context, assignment, error)


def _end(context: Context, assignment: Assignment, error: FerretError) -> None:
    held = assignment.id, assignment.fence
    match error.code:
        case "worker.stopping":
            context.database.transact(lambda s: assignments.give_back(s, *held))
            raise error
        case code if code in REFUSED | TRANSIENT:
            raise error
        case _:
            context.database.transact(lambda s: assignments.reject(s, *held, error))


def _contribute(context: Context, assignment: Assignment, lease: Lease) -> tuple[LocalUpdate, LocalCost]:
    task = RoundTask.model_validate(assignment.task)
    bench = context.bench(task.experiment, task.round - 1)
    memory = mended(context, task.experiment, lambda: recall(context, task))
    client = Client(task, bench.data.shard(task.participant), memory, lease.check)
    return measured(partial(contribute, bench.replica, client), context.device)


def _report(context: Context, assignment: Assignment, update: LocalUpdate, cost: LocalCost) -> None:
    contribution, memory = update
    stored = context.storage.put_bytes(contribution.encode(), "contributions")
    failpoint("train.stored")
    kept = context.storage.put_bytes(encode(memory, {}), "memories").digest if memory else None
    failpoint("train.remembered")
    context.database.transact(
        lambda s: assignments.accept(
            s,
            assignment.id,
            assignment.fence,
            digest=stored.digest,
            size=stored.size,
            meta=contribution.meta,
            cost=cost,
            memory_digest=kept,
        )
    )
