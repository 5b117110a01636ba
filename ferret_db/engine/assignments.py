"""Assignments: leased, kept alive, delivered or given up. The fence refuses results of a lost lease."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, ParticipantKind, RoundState
from ferret_core.protocol.task_names import TaskName
from ferret_db import clock
from ferret_db.engine.rounds import close_if_due
from ferret_db.repositories import assignments, events, experiments, outbox, rejections, rounds, service_clock
from ferret_db.repositories.events import EventType
from ferret_db.statements import swap
from ferret_db.tables import Assignment, Experiment, Round

TRIES = 3
"""Maximum unusable uploads per assignment: an upload can be cut off in transit."""
SPOILT = frozenset({"contribution.malformed", "contribution.non_finite", "upload.corrupt"})


def lease(s: Session, assignment_id: str, seconds: float) -> Assignment | None:
    """Leases the assignment for ``seconds`` under a new fence. Returns None if there is nothing to do.

    There is nothing to do if it is finished, if a live worker holds it, if its round has closed, or if the experiment
    is paused.
    """
    assignments.get(s, assignment_id)
    return lease_all(s, [assignment_id], seconds).get(assignment_id)


def lease_all(s: Session, assignment_ids: Iterable[str], seconds: float) -> dict[str, Assignment]:
    """Leases the assignments as :func:`lease` does. Returns the leased ones by id."""
    found = assignments.lock_all(s, sorted(set(assignment_ids)))
    # Under the locks, so that a transition that takes all work back, such as a pause, runs before or after all of this.
    working = rounds.giving_work(s, {row.round_id for row in found})
    now = clock.now(s)
    free = [row for row in found if row.round_id in working and _is_free(row, now)]
    for row in free:
        if row.kind == ParticipantKind.SIMULATED:
            outbox.drop(s, TaskName.TRAIN, row.id)
    return {row.id: row for row in assignments.leased(s, free, now + timedelta(seconds=seconds))}


def heartbeat(s: Session, assignment_id: str, fence: int, seconds: float) -> datetime:
    """Prolongs the lease and returns its new end. ``lease.lost`` means stop, e.g. after a cancellation or a pause."""
    until = clock.now(s) + timedelta(seconds=seconds)
    if not assignments.extend(s, assignment_id, fence, until):
        raise lost(assignments.get(s, assignment_id), fence)
    return until


def give_back(s: Session, assignment_id: str, fence: int) -> None:
    """Moves leased → pending and calls another worker. Raises ``lease.lost`` if ``fence`` is outdated."""
    assignment = assignments.get(s, assignment_id, lock=True)
    check_held(assignment, fence, clock.now(s))
    if swap(s, assignment, AssignmentState.PENDING, lease_until=None) is None:
        raise lost(assignment, fence)
    if assignment.kind == ParticipantKind.SIMULATED:
        outbox.add(s, TaskName.TRAIN, assignment_id, assignment.experiment_id)


def reject(s: Session, assignment_id: str, fence: int, error: FerretError) -> None:
    """Ends the assignment with its reason and freezes the round if it was the last one. Repeating it changes nothing.

    Raises ``round.closed`` and ``lease.lost``.
    """
    experiment, assignment, round_ = _locked(s, assignment_id)
    if assignment.state == AssignmentState.REJECTED and assignment.fence == fence:
        return
    check_open(experiment, round_)
    check_held(assignment, fence, clock.now(s))
    if swap(s, assignment, AssignmentState.REJECTED, lease_until=None, error=error.summary()) is None:
        raise lost(assignment, fence)
    _tell(s, assignment, "contribution.rejected", code=error.code, detail=error.summary()["detail"])
    close_if_due(s, experiment, round_, assignments.count_of_round(s, round_.id), service_clock.time(s))


def record_bad_upload(s: Session, assignment_id: str, fence: int, error: FerretError) -> None:
    """Records an unusable upload. The participant may send another one; after ``TRIES`` the assignment ends.

    Earlier ones count as recorded by :func:`refuse`. Raises ``round.closed`` and ``lease.lost``.
    """
    if rejections.count(s, assignment_id, SPOILT) + 1 >= TRIES:
        reject(s, assignment_id, fence, error)
        return
    experiment, assignment, round_ = _locked(s, assignment_id)
    check_open(experiment, round_)
    check_held(assignment, fence, clock.now(s))


def refuse(s: Session, assignment_id: str, error: FerretError) -> None:
    """Records that an upload for the assignment was refused, and why. Changes no state.

    ``error`` has rolled back its own transaction, so this needs a separate one.
    """
    assignment = assignments.get(s, assignment_id)
    experiments.lock(s, assignment.experiment_id)
    rejections.record(s, assignment, error)


class _Locked(NamedTuple):
    """An assignment with the rows that a result for it changes, read after the experiment was locked."""

    experiment: Experiment
    assignment: Assignment
    round: Round


def _locked(s: Session, assignment_id: str) -> _Locked:
    experiment = experiments.lock(s, assignments.get(s, assignment_id).experiment_id)
    assignment = assignments.get(s, assignment_id, lock=True)
    return _Locked(experiment, assignment, rounds.get(s, assignment.round_id))


def _is_free(assignment: Assignment, now: datetime) -> bool:
    ran_out = assignment.lease_until is not None and assignment.lease_until <= now
    return assignment.state == AssignmentState.PENDING or (assignment.state == AssignmentState.LEASED and ran_out)


def _tell(s: Session, assignment: Assignment, type_: EventType, **data: str | int) -> None:
    who = {"participant": assignment.participant, "kind": assignment.kind}
    events.add(s, assignment.experiment_id, type_, round=assignment.round, data=who | data)


def check_open(experiment: Experiment, round_: Round) -> None:
    """Raises ``round.closed``, which names the current round."""
    if round_.state == RoundState.OPEN:
        return
    current = experiments.current_round(experiment)
    now = f"the current round is {current}; ask for the next assignment" if current else "there will be no more rounds"
    raise FerretError(
        "round.closed",
        f"round {round_.number}, attempt {round_.attempt}, is {round_.state}; {now}",
        members={"current_round": current},
    )


def check_held(assignment: Assignment, fence: int, now: datetime) -> None:
    """Raises ``lease.lost`` unless ``fence`` holds the assignment."""
    if assignment.state != AssignmentState.LEASED or assignment.fence != fence:
        raise lost(assignment, fence)
    if assignment.lease_until is not None and assignment.lease_until <= now:
        message = f"the lease on {assignment.id} ran out at {assignment.lease_until.isoformat()}"
        raise FerretError("lease.lost", f"{message}; discard this work and ask for the next assignment")


def lost(assignment: Assignment, fence: int) -> FerretError:
    """Returns ``lease.lost``: the fence is not, or no longer, the assignment's."""
    return FerretError(
        "lease.lost",
        f"fence {fence} does not hold {assignment.id}, which is {assignment.state} under fence {assignment.fence}; "
        "discard this work and ask for the next assignment",
    )
