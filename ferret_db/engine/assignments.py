"""An assignment: leased, kept alive, delivered or given up. The fence refuses results of a lost lease."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy.orm import Session

from ferret_core.cost import LocalCost
from ferret_core.ledger import Signature
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, ParticipantKind, RoundState
from ferret_core.protocol.tasks import TaskName
from ferret_core.sealed import Sealed
from ferret_db import clock
from ferret_db.engine.rounds import close_if_due
from ferret_db.repositories import assignments, contributions, events, experiments, outbox, rejections, rounds
from ferret_db.repositories._swap import swap
from ferret_db.repositories.events import EventType
from ferret_db.tables import Assignment, Contribution, Experiment, Round

TRIES = 3
"""Uploads for one assignment that may be unusable: they can be cut off on their way."""
SPOILT = frozenset({"contribution.malformed", "contribution.non_finite"})


def lease(s: Session, assignment_id: str, seconds: float) -> Assignment | None:
    """The assignment, ours for ``seconds`` under a new fence; None if there is nothing to do.

    That is when it is finished, leased by someone alive, its round no longer open, or the experiment paused.
    """
    assignment = assignments.get(s, assignment_id)
    if not rounds.gives_work(s, assignment.round_id):
        return None
    now = clock.now(s)
    free = _released(s, assignment, now) if assignment.state == AssignmentState.LEASED else assignment
    if free is None or free.state != AssignmentState.PENDING:
        return None
    if free.kind == ParticipantKind.SIMULATED:
        outbox.drop(s, TaskName.TRAIN, assignment_id)
    return swap(
        s,
        free,
        AssignmentState.LEASED,
        attempt=free.attempt + 1,
        fence=free.fence + 1,
        lease_until=now + timedelta(seconds=seconds),
    )


def heartbeat(s: Session, assignment_id: str, fence: int, seconds: float) -> datetime:
    """Prolongs the lease and returns its new end; ``lease.lost`` means stop, e.g. after a cancellation or a pause."""
    until = clock.now(s) + timedelta(seconds=seconds)
    if not assignments.extend(s, assignment_id, fence, until):
        raise _lost(assignments.get(s, assignment_id), fence)
    return until


def give_back(s: Session, assignment_id: str, fence: int) -> None:
    """leased → pending at once, with a new message for another worker; ``lease.lost`` if ``fence`` does not hold it."""
    assignment = assignments.get(s, assignment_id, lock=True)
    _check_held(assignment, fence, clock.now(s))
    if swap(s, assignment, AssignmentState.PENDING, lease_until=None) is None:
        raise _lost(assignment, fence)
    if assignment.kind == ParticipantKind.SIMULATED:
        outbox.add(s, TaskName.TRAIN, assignment_id, assignment.experiment_id)


def check(
    s: Session,
    assignment_id: str,
    fence: int,
    sealed: Sealed,
    idempotency_key: str | None = None,
) -> None:
    """Raises what :func:`accept` would for a contribution that it has not taken yet: none is stored in vain."""
    assignment = assignments.get(s, assignment_id)
    recorded = contributions.of_assignment(s, assignment_id)
    _check(s, assignment, rounds.get(s, assignment.round_id), recorded, fence, sealed, idempotency_key)


def check_held(s: Session, assignment_id: str, fence: int) -> None:
    """Raises ``round.closed`` or ``lease.lost`` unless the round is open and ``fence`` holds the assignment."""
    assignment = assignments.get(s, assignment_id)
    _check_open(s, rounds.get(s, assignment.round_id))
    _check_held(assignment, fence, clock.now(s))


def accept(
    s: Session,
    assignment_id: str,
    fence: int,
    sealed: Sealed,
    *,
    cost: LocalCost,
    memory_digest: str | None = None,
    idempotency_key: str | None = None,
    signature: Signature | None = None,
) -> Contribution:
    """Records the contribution, whose bytes are stored, and freezes the round if that was the last one needed.

    ``memory_digest`` names what a simulated client keeps, which counts from the round's commit on. ``signature`` is a
    real participant's, verified.

    The same contribution again returns what is recorded. Raises ``idempotency.conflict`` where the participant used
    the key for another one, ``contribution.duplicate`` for another one, ``round.closed``, ``lease.lost``, and
    ``contribution.wrong_base``. What is refused is noted by :func:`refuse`.
    """
    experiment, assignment, round_ = _locked(s, assignment_id)
    recorded = contributions.of_assignment(s, assignment_id)
    if recorded is not None and recorded.digest == sealed.digest:
        return recorded
    _check(s, assignment, round_, recorded, fence, sealed, idempotency_key)
    if swap(s, assignment, AssignmentState.ACCEPTED, lease_until=None, seconds=cost.seconds) is None:
        raise _lost(assignment, fence)
    counts, size = assignments.count_of_round(s, round_.id), sealed.size
    contribution = contributions.add(
        s,
        Contribution(
            experiment_id=experiment.id,
            round_id=round_.id,
            round=round_.number,
            participant=assignment.participant,
            assignment_id=assignment.id,
            digest=sealed.digest,
            size=size,
            examples=sealed.meta.examples,
            metrics=dict(sealed.meta.metrics),
            cost=cost._asdict(),
            bytes_down=round_.bytes_down // sum(counts.values()),
            memory_digest=memory_digest,
            idempotency_key=idempotency_key,
            public_key=signature and signature.public_key,
            signature=signature and signature.signature,
        ),
    )
    rounds.count_bytes_up(s, round_, size)
    _tell(s, assignment, "contribution.accepted", digest=sealed.digest, size=size)
    close_if_due(s, experiment, round_, counts)
    return contribution


def reject(s: Session, assignment_id: str, fence: int, error: FerretError) -> None:
    """Ends the assignment with its reason and freezes the round if it was the last one; again is once.

    Raises ``round.closed`` and ``lease.lost``.
    """
    experiment, assignment, round_ = _locked(s, assignment_id)
    if assignment.state == AssignmentState.REJECTED and assignment.fence == fence:
        return
    _check_open(s, round_)
    _check_held(assignment, fence, clock.now(s))
    if swap(s, assignment, AssignmentState.REJECTED, lease_until=None, error=error.summary()) is None:
        raise _lost(assignment, fence)
    _tell(s, assignment, "contribution.rejected", code=error.code, detail=error.summary()["detail"])
    close_if_due(s, experiment, round_, assignments.count_of_round(s, round_.id))


def spoilt(s: Session, assignment_id: str, fence: int, error: FerretError) -> None:
    """An upload that cannot be used: the participant may send another one, but the last of ``TRIES`` ends it.

    Earlier ones count as :func:`refuse` has noted them. Raises ``round.closed`` and ``lease.lost``.
    """
    if rejections.count(s, assignment_id, SPOILT) + 1 >= TRIES:
        reject(s, assignment_id, fence, error)
        return
    _, assignment, round_ = _locked(s, assignment_id)
    _check_open(s, round_)
    _check_held(assignment, fence, clock.now(s))


def refuse(s: Session, assignment_id: str, error: FerretError) -> None:
    """Notes that an upload for the assignment was refused and why; moves nothing.

    ``error`` has undone the transaction that it came from: this needs one of its own.
    """
    assignment = assignments.get(s, assignment_id)
    experiments.lock(s, assignment.experiment_id)
    rejections.record(s, assignment, error)


class _Locked(NamedTuple):
    """An assignment with all that a result for it moves, as it stands once the experiment is locked."""

    experiment: Experiment
    assignment: Assignment
    round: Round


def _locked(s: Session, assignment_id: str) -> _Locked:
    experiment = experiments.lock(s, assignments.get(s, assignment_id).experiment_id)
    assignment = assignments.get(s, assignment_id, lock=True)
    return _Locked(experiment, assignment, rounds.get(s, assignment.round_id))


def _released(s: Session, assignment: Assignment, now: datetime) -> Assignment | None:
    """leased → pending once the lease has run out; None if its holder still has time."""
    if assignment.lease_until is None or assignment.lease_until > now:
        return None
    return swap(s, assignment, AssignmentState.PENDING, lease_until=None)


def _check(
    s: Session,
    assignment: Assignment,
    round_: Round,
    recorded: Contribution | None,
    fence: int,
    sealed: Sealed,
    key: str | None,
) -> None:
    """All that may be wrong with a contribution that is not the one ``recorded`` for the assignment, if any."""
    _check_key(s, assignment, sealed.digest, key)
    _check_first(recorded, sealed.digest)
    _check_open(s, round_)
    _check_held(assignment, fence, clock.now(s))
    _check_base(round_, sealed.meta.base_digest)


def _check_key(s: Session, assignment: Assignment, digest: str, key: str | None) -> None:
    if key is None:
        return
    keyed = contributions.by_idempotency_key(s, assignment.experiment_id, assignment.participant, key)
    if keyed is not None:
        message = (
            f"was used with {keyed.digest} for round {keyed.round} and now with {digest}; use a new key for each upload"
        )
        raise FerretError.of_field("idempotency.conflict", "Idempotency-Key", key, message)


def _check_first(recorded: Contribution | None, digest: str) -> None:
    if recorded is not None:
        message = f"{recorded.participant} already delivered {recorded.digest} for round {recorded.round}"
        raise FerretError.of_field("contribution.duplicate", "digest", digest, message)


def _check_open(s: Session, round_: Round) -> None:
    if round_.state == RoundState.OPEN:
        return
    current = experiments.current_round(experiments.get(s, round_.experiment_id))
    now = f"the current round is {current}; ask for the next assignment" if current else "there will be no more rounds"
    raise FerretError(
        "round.closed",
        f"round {round_.number}, attempt {round_.attempt}, is {round_.state}; {now}",
        members={"current_round": current},
    )


def _check_held(assignment: Assignment, fence: int, now: datetime) -> None:
    if assignment.state != AssignmentState.LEASED or assignment.fence != fence:
        raise _lost(assignment, fence)
    if assignment.lease_until is not None and assignment.lease_until <= now:
        message = f"the lease on {assignment.id} ran out at {assignment.lease_until.isoformat()}"
        raise FerretError("lease.lost", f"{message}; discard this work and ask for the next assignment")


def _check_base(round_: Round, base_digest: str) -> None:
    if base_digest != round_.base_digest:
        message = f"round {round_.number} starts from {round_.base_digest}: resync, rebuild the model from the ledger"
        raise FerretError.of_field("contribution.wrong_base", "base_digest", base_digest, message)


def _tell(s: Session, assignment: Assignment, type_: EventType, **data: str | int) -> None:
    who = {"participant": assignment.participant, "kind": assignment.kind}
    events.add(s, assignment.experiment_id, type_, round=assignment.round, data=who | data)


def _lost(assignment: Assignment, fence: int) -> FerretError:
    return FerretError(
        "lease.lost",
        f"fence {fence} does not hold {assignment.id}, which is {assignment.state} under fence {assignment.fence}; "
        "discard this work and ask for the next assignment",
    )
