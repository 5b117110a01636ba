"""``train``: one simulated client's part in one round, under a lease."""

from __future__ import annotations

from ferret_core.algorithms._base import Client
from ferret_core.failpoints import failpoint
from ferret_core.memory import memory_checked
from ferret_core.participant import Part, contribute
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.wire import encode
from ferret_core.storage import FileKind
from ferret_db import tracing
from ferret_db.engine import acceptance, assignments
from ferret_db.engine.acceptance import Offer
from ferret_db.engine.tasks import REFUSED, TRANSIENT
from ferret_db.tables import Assignment
from ferret_worker.context import Context
from ferret_worker.lease import LeaseKeeper
from ferret_worker.repair import recall, repaired


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
        with LeaseKeeper(context.database, assignment, seconds, lambda: context.stopping) as keeper:
            part = _contribute(context, assignment, keeper)
        failpoint("train.trained")
        _report(context, assignment, part)
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


def _contribute(context: Context, assignment: Assignment, keeper: LeaseKeeper) -> Part:
    task = RoundTask.model_validate(assignment.task)
    with memory_checked():
        kept, memory = repaired(
            context, task.experiment, lambda: (context.model_at(task.experiment, task.round - 1), recall(context, task))
        )

    def check(step: int) -> None:
        context.require_wanted()
        keeper.check(step)

    with tracing.span("local_update", algorithm=kept.replica.spec.algorithm.name):
        return contribute(kept.replica, Client(task, kept.data.shard(task.participant), memory, check))


def _report(context: Context, assignment: Assignment, part: Part) -> None:
    sealed, memory, cost = part
    context.storage.put_pieces(sealed.pieces, FileKind.CONTRIBUTION, sealed.digest)
    failpoint("train.stored")
    kept = context.storage.put_bytes(encode(memory, {}), FileKind.MEMORY).digest if memory else None
    failpoint("train.remembered")
    offer = Offer(assignment.id, assignment.fence, sealed, cost, memory_digest=kept)
    context.database.transact(lambda s: acceptance.accept(s, offer))
