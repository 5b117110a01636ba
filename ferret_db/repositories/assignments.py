"""Assignments: who does what in a round, and who holds the lease."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, or_, select, update
from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, ParticipantKind, RoundState
from ferret_db.clock import utcnow
from ferret_db.tables import Assignment, Round

_FRESH: dict[str, Any] = {"populate_existing": True}
_UNFINISHED = [state for state in AssignmentState if not state.finished]


def add_all(s: Session, rows: Sequence[Assignment]) -> None:
    s.add_all(rows)
    s.flush()


def get(s: Session, assignment_id: str) -> Assignment:
    """The assignment, or ``assignment.not_found``."""
    found = s.get(Assignment, assignment_id, populate_existing=True)
    if found is None:
        raise FerretError.of_field("assignment.not_found", "assignment", assignment_id, "unknown; ask for a new one")
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
    """What the real participant could lease now: in an open round, pending or with a lease that ran out."""
    query = (
        select(Assignment)
        .join(Round, Round.id == Assignment.round_id)
        .where(Assignment.participant_id == participant_id, Round.state == RoundState.OPEN, _free())
        .order_by(Assignment.round)
        .limit(1)
    )
    return s.scalars(query, execution_options=_FRESH).one_or_none()


def extend(s: Session, assignment_id: str, fence: int, until: datetime) -> bool:
    """Prolongs the lease if ``fence`` still holds it."""
    held = Assignment.id == assignment_id, Assignment.state == AssignmentState.LEASED, Assignment.fence == fence
    extended = s.execute(
        update(Assignment)
        .where(*held)
        .values(lease_until=until, version=Assignment.version + 1)
        .returning(Assignment.id),
        execution_options={"synchronize_session": False},
    )
    return extended.one_or_none() is not None


def expire(s: Session, round_id: str) -> None:
    """Ends the round's unfinished assignments; their holders' fences no longer fit."""
    s.execute(
        update(Assignment)
        .where(Assignment.round_id == round_id, Assignment.state.in_(_UNFINISHED))
        .values(
            state=AssignmentState.EXPIRED,
            version=Assignment.version + 1,
            fence=Assignment.fence + 1,
            lease_until=None,
        ),
        execution_options={"synchronize_session": False},
    )


def lost(s: Session, round_id: str) -> list[Assignment]:
    """The round's leased assignments whose lease ran out."""
    query = select(Assignment).where(Assignment.round_id == round_id, _ran_out())
    return list(s.scalars(query, execution_options=_FRESH))


def pending_simulated(s: Session, round_id: str) -> list[Assignment]:
    """What the round has waiting for our own workers."""
    query = select(Assignment).where(
        Assignment.round_id == round_id,
        Assignment.state == AssignmentState.PENDING,
        Assignment.kind == ParticipantKind.SIMULATED,
    )
    return list(s.scalars(query, execution_options=_FRESH))


def workers_busy(s: Session) -> bool:
    """Whether some worker trains a simulated client right now."""
    leased = and_(Assignment.state == AssignmentState.LEASED, Assignment.lease_until > utcnow())
    return bool(s.scalar(select(exists().where(leased, Assignment.kind == ParticipantKind.SIMULATED))))


def _ran_out() -> ColumnElement[bool]:
    return and_(Assignment.state == AssignmentState.LEASED, Assignment.lease_until <= utcnow())


def _free() -> ColumnElement[bool]:
    return or_(Assignment.state == AssignmentState.PENDING, _ran_out())
