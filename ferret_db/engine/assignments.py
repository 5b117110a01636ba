"""An assignment: leased, kept alive, delivered or given up. Results of a lost lease are refused by its fence."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from ferret_core.cost import LocalCost
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, RoundState
from ferret_core.protocol.wire import ContributionMeta
from ferret_db import clock
from ferret_db.engine.rounds import freeze_if_due
from ferret_db.repositories import assignments, contributions, events, experiments, rounds
from ferret_db.repositories._swap import swap
from ferret_db.tables import Assignment, Contribution, Round


def lease(s: Session, assignment_id: str, seconds: float) -> Assignment | None:
    """The assignment, ours for ``seconds`` under a new fence; None if there is nothing to do.

    That is when it is finished, leased by someone alive, or its round is no longer open.
    """
    assignment = assignments.get(s, assignment_id)
    if rounds.get(s, assignment.round_id).state != RoundState.OPEN:
        return None
    now = clock.now(s)
    free = release(s, assignment, now) if assignment.state == AssignmentState.LEASED else assignment
    if free is None or free.state != AssignmentState.PENDING:
        return None
    return swap(
        s,
        free,
        AssignmentState.LEASED,
        attempt=free.attempt + 1,
        fence=free.fence + 1,
        lease_until=now + timedelta(seconds=seconds),
    )


def lease_next(s: Session, participant_id: str, seconds: float) -> Assignment | None:
    """Leases what waits for the real participant, if anything does.

    ``repositories.assignments.next_for`` tells in a read-only transaction whether this is worth calling.
    """
    waiting = assignments.next_for(s, participant_id)
    return None if waiting is None else lease(s, waiting.id, seconds)


def release(s: Session, assignment: Assignment, now: datetime) -> Assignment | None:
    """leased → pending once the lease has run out; None if its holder still has time."""
    if assignment.lease_until is None or assignment.lease_until > now:
        return None
    return swap(s, assignment, AssignmentState.PENDING, lease_until=None)


def heartbeat(s: Session, assignment_id: str, fence: int, seconds: float) -> datetime:
    """Prolongs the lease and returns its new end; ``lease.lost`` means stop, e.g. after a cancellation."""
    until = clock.now(s) + timedelta(seconds=seconds)
    if not assignments.extend(s, assignment_id, fence, until):
        raise _lost(assignments.get(s, assignment_id), fence)
    return until


def accept(
    s: Session,
    assignment_id: str,
    fence: int,
    *,
    digest: str,
    size: int,
    meta: ContributionMeta,
    cost: LocalCost,
    memory_digest: str | None = None,
) -> Contribution:
    """Stores the contribution and freezes the round if that was the last one; ``size`` in bytes.

    ``memory_digest`` names what a simulated client keeps, which counts from the round's commit on.

    The same ``digest`` again returns what is stored. Raises ``contribution.duplicate`` for another digest,
    ``round.closed``, ``lease.lost``, ``contribution.malformed`` when ``meta`` speaks of another task, and
    ``contribution.wrong_base``.
    """
    assignment, round_ = _locked(s, assignment_id)
    stored = contributions.of_assignment(s, assignment_id)
    if stored is not None:
        return _repeated(stored, digest)
    _check_open(round_)
    _check_held(assignment, fence)
    _check_meta(assignment, round_, meta)
    if swap(s, assignment, AssignmentState.ACCEPTED, lease_until=None, seconds=cost.seconds) is None:
        raise _lost(assignment, fence)
    contribution = contributions.add(s, _contribution(s, assignment, round_, digest, size, meta, cost, memory_digest))
    rounds.count_bytes_up(s, round_.id, size)
    _tell(s, assignment, digest, size)
    freeze_if_due(s, round_.id)
    return contribution


def reject(s: Session, assignment_id: str, fence: int, error: FerretError) -> None:
    """Ends the assignment with its reason and freezes the round if it was the last one; again is once.

    Raises ``round.closed`` and ``lease.lost``.
    """
    assignment, round_ = _locked(s, assignment_id)
    if assignment.state == AssignmentState.REJECTED and assignment.fence == fence:
        return
    _check_open(round_)
    _check_held(assignment, fence)
    problem = error.to_json()
    if swap(s, assignment, AssignmentState.REJECTED, lease_until=None, error=problem) is None:
        raise _lost(assignment, fence)
    data = {"participant": assignment.participant, "kind": assignment.kind, "code": error.code, "detail": error.detail}
    events.add(s, assignment.experiment_id, "contribution.rejected", round=assignment.round, data=data)
    freeze_if_due(s, round_.id)


def _locked(s: Session, assignment_id: str) -> tuple[Assignment, Round]:
    """The assignment and its round as they stand once the experiment is locked."""
    experiments.lock(s, assignments.get(s, assignment_id).experiment_id)
    assignment = assignments.get(s, assignment_id)
    return assignment, rounds.get(s, assignment.round_id)


def _repeated(stored: Contribution, digest: str) -> Contribution:
    if stored.digest != digest:
        message = f"{stored.participant} already delivered {stored.digest} for round {stored.round}"
        raise FerretError.of_field("contribution.duplicate", "digest", digest, message)
    return stored


def _check_open(round_: Round) -> None:
    if round_.state != RoundState.OPEN:
        raise FerretError("round.closed", f"round {round_.number} is {round_.state}; ask for the next assignment")


def _check_held(assignment: Assignment, fence: int) -> None:
    if assignment.state != AssignmentState.LEASED or assignment.fence != fence:
        raise _lost(assignment, fence)


def _check_meta(assignment: Assignment, round_: Round, meta: ContributionMeta) -> None:
    for field in ("experiment", "round", "participant"):
        given, expected = getattr(meta, field), assignment.task[field]
        if given != expected:
            raise FerretError.of_field("contribution.malformed", field, given, f"the assignment says {expected!r}")
    if meta.base_digest != round_.base_digest:
        message = f"round {round_.number} starts from {round_.base_digest}; rebuild the model from the ledger"
        raise FerretError.of_field("contribution.wrong_base", "base_digest", meta.base_digest, message)


def _contribution(
    s: Session,
    assignment: Assignment,
    round_: Round,
    digest: str,
    size: int,
    meta: ContributionMeta,
    cost: LocalCost,
    memory_digest: str | None,
) -> Contribution:
    return Contribution(
        experiment_id=assignment.experiment_id,
        round_id=round_.id,
        round=round_.number,
        participant=assignment.participant,
        assignment_id=assignment.id,
        digest=digest,
        size=size,
        examples=meta.examples,
        metrics=dict(meta.metrics),
        cost=cost._asdict(),
        bytes_down=round_.bytes_down // sum(assignments.count_of_round(s, round_.id).values()),
        memory_digest=memory_digest,
    )


def _tell(s: Session, assignment: Assignment, digest: str, size: int) -> None:
    data = {"participant": assignment.participant, "kind": assignment.kind, "digest": digest, "size": size}
    events.add(s, assignment.experiment_id, "contribution.accepted", round=assignment.round, data=data)


def _lost(assignment: Assignment, fence: int) -> FerretError:
    return FerretError(
        "lease.lost",
        f"fence {fence} does not hold {assignment.id}, which is {assignment.state} under fence {assignment.fence}; "
        "drop this work and ask for the next assignment",
    )
