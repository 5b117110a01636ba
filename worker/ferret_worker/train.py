"""``train``: one simulated client's part in one round, under a lease."""

from __future__ import annotations

from ferret_core.client.local_round import LocalRound
from ferret_core.client.state import ClientState
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.storage import FileKind
from ferret_core.system.failpoints import failpoint
from ferret_db.engine import acceptance, assignments
from ferret_db.engine.acceptance import ContributionOffer
from ferret_db.engine.file_integrity import DAMAGE
from ferret_db.engine.task_attempts import REFUSED, TRANSIENT
from ferret_db.tables import Assignment
from ferret_worker.lease_keeper import LeaseKeeper
from ferret_worker.local_round import train_in_group, train_locally
from ferret_worker.storage import StateBlobs
from ferret_worker.worker_state import WorkerState


def train(context: WorkerState, assignment_id: str) -> None:
    """Leases the assignment, trains, and reports. Does nothing if the assignment is finished.

    In a team this is the first process, and the others train with it. An error of the work itself ends the assignment
    with that reason. Raises other errors: a lost lease, a stopping worker, a full disk, a broken team, a bug.
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
            offer = _stored(context, assignment, part)
        context.database.transact(lambda s: acceptance.accept(s, offer))
        failpoint("train.reported")
    except FerretError as error:
        _end(context, assignment, error)


GIVEN_BACK = frozenset({"worker.stopping", "process_group.failed"})
"""Ends of a training after which another worker may start immediately; also a damaged file, which no team repairs."""


def _end(context: WorkerState, assignment: Assignment, error: FerretError) -> None:
    held = assignment.id, assignment.fence
    match error.code:
        case code if code in GIVEN_BACK or (code in DAMAGE and context.team is not None):
            context.database.transact(lambda s: assignments.give_back(s, *held))
            raise error
        case code if code in REFUSED | TRANSIENT:
            raise error
        case _:
            context.database.transact(lambda s: assignments.reject(s, *held, error))


def _contribute(context: WorkerState, assignment: Assignment, keeper: LeaseKeeper) -> LocalRound:
    task, announcer = RoundTask.model_validate(assignment.task), context.announcer

    def check(step: int) -> None:
        context.require_wanted()
        keeper.check(step)

    if announcer is None:
        return train_locally(context, task, check)
    return train_in_group(context, announcer.team, announcer.announce(task), task, check)


def _stored(context: WorkerState, assignment: Assignment, part: LocalRound) -> ContributionOffer:
    """Stores the contribution and the client's memory, which may take as long as training, while the lease is kept."""
    sealed, memory, cost = part
    context.storage.put_pieces(sealed.pieces, FileKind.CONTRIBUTION, sealed.digest)
    failpoint("train.stored")
    kept = ClientState(StateBlobs(context.storage)).stage(sealed.digest, memory)
    failpoint("train.remembered")
    return ContributionOffer(assignment.id, assignment.fence, sealed, cost, memory_digest=kept)
