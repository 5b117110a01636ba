"""Assignments: who does what in a round, and who holds the lease."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, func, insert, or_, select, update
from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, ExperimentState, ParticipantKind, RoundState
from ferret_db.clock import now, utcnow
from ferret_db.repositories._upsert import insert as upsert
from ferret_db.tables import Assignment, Experiment, Participant, Round

_FRESH: dict[str, Any] = {"populate_existing": True}
_UNSYNCHRONISED: dict[str, Any] = {"synchronize_session": False}
_UNFINISHED = [state for state in AssignmentState if not state.finished]


def add_all(s: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Inserts rows given as columns by name: a thousand as objects would take several times as long."""
    s.execute(insert(Assignment), rows)


def add_missing(s: Session, rows: Sequence[dict[str, Any]]) -> None:
    """The same, but for participants that have an assignment in the round already."""
    # On the connection: the ORM would take several times as long, and the write lock with it.
    s.connection().execute(upsert(s, Assignment).on_conflict_do_nothing(), rows)


def participants(s: Session, round_id: str) -> set[str]:
    """The names of those who have an assignment in the round."""
    return set(s.scalars(select(Assignment.participant).where(Assignment.round_id == round_id)))


def get(s: Session, assignment_id: str, *, lock: bool = False) -> Assignment:
    """The assignment, on request ours until the transaction ends, or ``assignment.not_found``.

    A heartbeat moves a row's version without the experiment's lock: what must not lose against one locks the row too.
    """
    locking = {"key_share": True} if lock else None
    found = s.get(Assignment, assignment_id, populate_existing=True, with_for_update=locking)
    if found is None:
        raise FerretError.of_field(
            "assignment.not_found", "assignment", assignment_id, "unknown; ask for the next assignment"
        )
    return found


def of_round(s: Session, round_id: str) -> list[Assignment]:
    """The round's assignments in participant order."""
    query = select(Assignment).where(Assignment.round_id == round_id).order_by(Assignment.participant)
    return list(s.scalars(query, execution_options=_FRESH))


def count_of_round(s: Session, round_id: str) -> dict[AssignmentState, int]:
    query = select(Assignment.state, func.count()).where(Assignment.round_id == round_id).group_by(Assignment.state)
    return dict(s.execute(query).all())


def count_by_state(s: Session) -> dict[AssignmentState, int]:
    query = select(Assignment.state, func.count()).group_by(Assignment.state)
    return dict(s.execute(query).all())


def next_for(s: Session, participant_id: str) -> Assignment | None:
    """What the real participant could lease now, if the experiment runs: pending, or with a lease that ran out."""
    query = (
        select(Assignment)
        .join(Round, Round.id == Assignment.round_id)
        .join(Experiment, Experiment.id == Round.experiment_id)
        .where(Assignment.participant_id == participant_id, _free())
        .where(Round.state == RoundState.OPEN, Experiment.state == ExperimentState.RUNNING)
        .order_by(Assignment.round)
        .limit(1)
    )
    return s.scalars(query, execution_options=_FRESH).one_or_none()


def unfinished_participants(s: Session, round_id: str) -> frozenset[str]:
    """Ids of the real participants that have something to do in the round, or are at it."""
    query = select(Assignment.participant_id).where(Assignment.round_id == round_id, Assignment.state.in_(_UNFINISHED))
    return frozenset(found for found in s.scalars(query) if found is not None)


def seconds_leased(s: Session, round_id: str, participant_id: str) -> float | None:
    """For how long the participant's lease in the round holds yet; None without one."""
    query = select(Assignment.lease_until).where(
        Assignment.round_id == round_id,
        Assignment.participant_id == participant_id,
        Assignment.state == AssignmentState.LEASED,
    )
    until = s.scalars(query).one_or_none()
    return None if until is None else (until - now(s)).total_seconds()


def extend(s: Session, assignment_id: str, fence: int, until: datetime) -> bool:
    """Prolongs the lease if ``fence`` still holds it."""
    held = Assignment.id == assignment_id, Assignment.state == AssignmentState.LEASED, Assignment.fence == fence
    extended = s.execute(
        update(Assignment)
        .where(*held)
        .values(lease_until=until, version=Assignment.version + 1)
        .returning(Assignment.id),
        execution_options=_UNSYNCHRONISED,
    )
    return extended.one_or_none() is not None


def expire(s: Session, round_id: str) -> None:
    """Ends the round's unfinished assignments; their holders' fences no longer fit."""
    _take_from_holders(s, round_id, AssignmentState.EXPIRED)


def take_back(s: Session, round_id: str) -> None:
    """The round's unfinished assignments wait for somebody again; their holders' fences no longer fit.

    Those that wait already move on too: a lease that is being taken at this moment is taken back or not given.
    """
    _take_from_holders(s, round_id, AssignmentState.PENDING)


def release_lost(s: Session, round_id: str, limit: int) -> int:
    """leased → pending where the lease ran out, ``limit`` at most; how many there were."""
    ran_out = select(Assignment.id).where(Assignment.round_id == round_id, _ran_out()).limit(limit)
    released = s.execute(
        update(Assignment)
        .where(Assignment.id.in_(ran_out), _ran_out())
        .values(state=AssignmentState.PENDING, version=Assignment.version + 1, lease_until=None)
        .returning(Assignment.id),
        execution_options=_UNSYNCHRONISED,
    )
    return len(released.all())


def untrained_since(s: Session, experiment_id: str) -> datetime | None:
    """When the open round was opened that has work for our own workers in nobody's hands; None without such work."""
    query = (
        select(Round.opened_at)
        .join(Assignment, Assignment.round_id == Round.id)
        .where(Round.experiment_id == experiment_id, Round.state == RoundState.OPEN)
        .where(Assignment.kind == ParticipantKind.SIMULATED, _free())
        .limit(1)
    )
    return s.scalars(query).one_or_none()


def first_error(s: Session, round_id: str) -> dict[str, Any] | None:
    """Why the first of the round's rejected assignments was rejected."""
    query = (
        select(Assignment.error)
        .where(Assignment.round_id == round_id, Assignment.state == AssignmentState.REJECTED)
        .order_by(Assignment.updated_at, Assignment.id)
        .limit(1)
    )
    return s.scalars(query).one_or_none()


def refuse(s: Session, round_id: str, refused: Mapping[str, dict[str, Any]]) -> None:
    """accepted → rejected, for participants whose contribution the round left out, with their errors by name."""
    for participant, error in refused.items():
        accepted = Assignment.participant == participant, Assignment.state == AssignmentState.ACCEPTED
        s.execute(
            update(Assignment)
            .where(Assignment.round_id == round_id, *accepted)
            .values(state=AssignmentState.REJECTED, version=Assignment.version + 1, error=error),
            execution_options=_UNSYNCHRONISED,
        )


def reject_revoked(s: Session, round_id: str, error: dict[str, Any]) -> list[str]:
    """Rejects the unfinished assignments of the round that revoked participants have; the participants' names."""
    revoked = select(Participant.id).where(Participant.revoked_at.is_not(None))
    rejected = s.execute(
        update(Assignment)
        .where(Assignment.round_id == round_id, Assignment.state.in_(_UNFINISHED))
        .where(Assignment.participant_id.in_(revoked))
        .values(
            state=AssignmentState.REJECTED,
            version=Assignment.version + 1,
            fence=Assignment.fence + 1,
            lease_until=None,
            error=error,
        )
        .returning(Assignment.participant),
        execution_options=_UNSYNCHRONISED,
    )
    return sorted(rejected.scalars())


def sitting_out(s: Session, experiment_id: str, number: int, attempt: int) -> set[str]:
    """Who failed in the attempt before this one at the round: rejected, or a real participant that never reported."""
    silent = and_(
        Round.frozen_at.is_(None),
        Assignment.state == AssignmentState.EXPIRED,
        Assignment.kind == ParticipantKind.EDGE,
    )
    query = (
        select(Assignment.participant)
        .join(Round, Round.id == Assignment.round_id)
        .where(Round.experiment_id == experiment_id, Round.number == number, Round.attempt == attempt - 1)
        .where(or_(Assignment.state == AssignmentState.REJECTED, silent))
    )
    return set(s.scalars(query))


def _take_from_holders(s: Session, round_id: str, after: AssignmentState) -> None:
    s.execute(
        update(Assignment)
        .where(Assignment.round_id == round_id, Assignment.state.in_(_UNFINISHED))
        .values(state=after, version=Assignment.version + 1, fence=Assignment.fence + 1, lease_until=None),
        execution_options=_UNSYNCHRONISED,
    )


def _ran_out() -> ColumnElement[bool]:
    return and_(Assignment.state == AssignmentState.LEASED, Assignment.lease_until <= utcnow())


def _free() -> ColumnElement[bool]:
    return or_(Assignment.state == AssignmentState.PENDING, _ran_out())
