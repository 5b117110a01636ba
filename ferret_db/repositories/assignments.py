"""Assignments: who does which part of a round, and who holds the lease."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, func, insert, or_, select, update
from sqlalchemy.orm import Session, defer

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, ExperimentState, ParticipantKind, RoundState, SumStage
from ferret_db.clock import utcnow
from ferret_db.statements import upsert
from ferret_db.tables import Assignment, Contribution, Experiment, Participant, Round, SecureMessage

_FRESH: dict[str, Any] = {"populate_existing": True}
_UNFINISHED = [state for state in AssignmentState if not state.finished]


def add_all(s: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Inserts rows given as columns by name. A thousand objects would take several times as long."""
    s.execute(insert(Assignment), rows)


def add_missing(s: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Inserts the rows of participants that do not have an assignment in the round yet."""
    # On the connection: the ORM would take several times as long, and the write lock with it.
    s.connection().execute(upsert(s, Assignment).on_conflict_do_nothing(), rows)


def participants(s: Session, round_id: str) -> set[str]:
    """Returns the names of the round's participants."""
    return set(s.scalars(select(Assignment.participant).where(Assignment.round_id == round_id)))


def get(s: Session, assignment_id: str, *, lock: bool = False) -> Assignment:
    """Returns the assignment, or raises ``assignment.not_found``. With ``lock`` it is locked until the transaction
    ends.

    A heartbeat increments a row's version without the experiment's lock. An update that must not lose against a
    heartbeat locks the row too.
    """
    locking = {"key_share": True} if lock else None
    found = s.get(Assignment, assignment_id, populate_existing=True, with_for_update=locking)
    if found is None:
        raise unknown(assignment_id)
    return found


def require_own(s: Session, assignment_id: str, participant_id: str) -> None:
    """Raises ``assignment.not_found`` for an assignment of another participant."""
    if get(s, assignment_id).participant_id != participant_id:
        raise unknown(assignment_id)


def unknown(assignment_id: str) -> FerretError:
    """Returns ``assignment.not_found``."""
    message = "unknown; ask for the next assignment"
    return FerretError.of_field("assignment.not_found", "assignment", assignment_id, message)


class Result(NamedTuple):
    """An assignment, its round, its accepted contribution, and the time of reading."""

    assignment: Assignment
    round: Round
    contribution: Contribution | None
    now: datetime


def with_results(s: Session, assignment_ids: Sequence[str], *, lock: bool = False) -> list[Result]:
    """Returns the existing assignments by id, with tasks deferred; ``lock`` is as in :func:`get`."""
    query = (
        select(Assignment, Round, Contribution, utcnow())
        .join(Round, Round.id == Assignment.round_id)
        .outerjoin(Contribution, Contribution.assignment_id == Assignment.id)
        .where(Assignment.id.in_(assignment_ids))
        .order_by(Assignment.id)
    )
    if lock:
        query = query.options(defer(Assignment.task)).with_for_update(key_share=True, of=Assignment)
    return [Result(*row) for row in s.execute(query, execution_options=_FRESH)]


def lock_all(s: Session, assignment_ids: Sequence[str]) -> Sequence[Assignment]:
    """Locks the assignments that exist, in the order of their ids. Tasks are deferred."""
    query = select(Assignment).where(Assignment.id.in_(assignment_ids)).order_by(Assignment.id)
    locked = query.options(defer(Assignment.task)).with_for_update(key_share=True)
    return s.scalars(locked, execution_options=_FRESH).all()


def leased(s: Session, free: Sequence[Assignment], until: datetime) -> Sequence[Assignment]:
    """Leases these assignments and loads their tasks. The caller has locked them and found them free."""
    if not free:
        return []
    given = update(Assignment).where(Assignment.id.in_([row.id for row in free])).values(lease_until=until)
    counted = given.values(
        state=AssignmentState.LEASED,
        version=Assignment.version + 1,
        attempt=Assignment.attempt + 1,
        fence=Assignment.fence + 1,
    )
    return s.scalars(counted.returning(Assignment), execution_options=_FRESH).all()


def accepted(s: Session, contributions: Sequence[Contribution]) -> None:
    """Moves leased → accepted for each contribution. The caller has locked the assignments and found them leased."""
    s.connection().execute(
        update(Assignment)
        .where(Assignment.id == bindparam("delivered"))
        .values(state=AssignmentState.ACCEPTED, version=Assignment.version + 1, lease_until=None)
        .values(seconds=bindparam("took")),
        [{"delivered": row.assignment_id, "took": (row.cost or {}).get("seconds")} for row in contributions],
    )


def of_round(s: Session, round_id: str) -> list[Assignment]:
    """Returns the round's assignments in participant order."""
    query = select(Assignment).where(Assignment.round_id == round_id).order_by(Assignment.participant)
    return list(s.scalars(query, execution_options=_FRESH))


def count_of_round(s: Session, round_id: str) -> dict[AssignmentState, int]:
    return count_of_rounds(s, [round_id])[round_id]


def count_of_rounds(s: Session, round_ids: Collection[str]) -> dict[str, dict[AssignmentState, int]]:
    """Counts assignments by round, then by state."""
    counts = select(Assignment.round_id, Assignment.state, func.count()).where(Assignment.round_id.in_(round_ids))
    found = {round_id: dict[AssignmentState, int]() for round_id in round_ids}
    for round_id, state, count in s.execute(counts.group_by(Assignment.round_id, Assignment.state)):
        found[round_id][state] = count
    return found


def count_by_state(s: Session) -> dict[AssignmentState, int]:
    query = select(Assignment.state, func.count()).group_by(Assignment.state)
    return dict(s.execute(query).all())


def next_for(s: Session, participant_ids: Collection[str]) -> dict[str, str]:
    """Returns, by real participant, the id of an assignment it could lease if its experiment runs.

    That is a pending assignment or one with an expired lease. While a round waits for deals, participants that have
    dealt have none.
    """
    dealt = (
        select(SecureMessage.participant)
        .where(SecureMessage.round_id == Assignment.round_id, SecureMessage.participant == Assignment.participant)
        .where(SecureMessage.kind == SumStage.DEAL, Round.stage == SumStage.DEAL)
    )
    query = (
        select(Assignment.participant_id, Assignment.id)
        .join(Round, Round.id == Assignment.round_id)
        .join(Experiment, Experiment.id == Round.experiment_id)
        .where(Assignment.participant_id.in_(participant_ids), _free())
        .where(Round.state == RoundState.OPEN, Experiment.state == ExperimentState.RUNNING, ~dealt.exists())
        .order_by(Assignment.round.desc())
    )
    return {participant_id: id_ for participant_id, id_ in s.execute(query) if participant_id is not None}


def unfinished_participants(s: Session, round_id: str) -> frozenset[str]:
    """Returns the ids of real participants with unfinished assignments in the round."""
    query = select(Assignment.participant_id).where(Assignment.round_id == round_id, Assignment.state.in_(_UNFINISHED))
    return frozenset(found for found in s.scalars(query) if found is not None)


def seconds_leased(s: Session, round_ids: Collection[str], participant_ids: Collection[str]) -> dict[str, float]:
    """Returns the remaining seconds of the participants' leases in the rounds, by participant."""
    query = select(Assignment.participant_id, Assignment.lease_until, utcnow()).where(
        Assignment.round_id.in_(round_ids),
        Assignment.participant_id.in_(participant_ids),
        Assignment.state == AssignmentState.LEASED,
    )
    return {who: (until - now).total_seconds() for who, until, now in s.execute(query) if who and until}


def extend(s: Session, assignment_id: str, fence: int, until: datetime) -> bool:
    """Prolongs the lease if ``fence`` still holds it."""
    held = Assignment.id == assignment_id, Assignment.state == AssignmentState.LEASED, Assignment.fence == fence
    extended = s.execute(
        update(Assignment)
        .where(*held)
        .values(lease_until=until, version=Assignment.version + 1)
        .returning(Assignment.id)
    )
    return extended.one_or_none() is not None


def unfinished_names(s: Session, round_id: str) -> set[str]:
    """Returns the names of the participants with unfinished assignments in the round."""
    query = select(Assignment.participant).where(Assignment.round_id == round_id, Assignment.state.in_(_UNFINISHED))
    return set(s.scalars(query))


def expire_some(s: Session, round_id: str, participants: Collection[str]) -> None:
    """Ends these participants' unfinished assignments of the round and invalidates their fences."""
    _take_from_holders(s, round_id, AssignmentState.EXPIRED, Assignment.participant.in_(participants))


def expire(s: Session, round_id: str) -> None:
    """Ends the round's unfinished assignments and invalidates their fences."""
    _take_from_holders(s, round_id, AssignmentState.EXPIRED)


def take_back(s: Session, round_id: str) -> None:
    """Returns the round's unfinished assignments to pending and invalidates their fences.

    Pending ones get a new version too, so a lease that is being taken at this moment is taken back or not given.
    """
    _take_from_holders(s, round_id, AssignmentState.PENDING)


def release_lost(s: Session, round_id: str, limit: int) -> int:
    """Moves leased → pending for at most ``limit`` expired leases. Returns their number."""
    ran_out = select(Assignment.id).where(Assignment.round_id == round_id, _ran_out()).limit(limit)
    released = s.execute(
        update(Assignment)
        .where(Assignment.id.in_(ran_out), _ran_out())
        .values(state=AssignmentState.PENDING, version=Assignment.version + 1, lease_until=None)
        .returning(Assignment.id)
    )
    return len(released.all())


def untrained_since(s: Session, experiment_id: str) -> datetime | None:
    """Returns the opening time of the open round if it has free work for our own workers, else None."""
    query = (
        select(Round.opened_at)
        .join(Assignment, Assignment.round_id == Round.id)
        .where(Round.experiment_id == experiment_id, Round.state == RoundState.OPEN)
        .where(Assignment.kind == ParticipantKind.SIMULATED, _free())
        .limit(1)
    )
    return s.scalars(query).one_or_none()


def errors(s: Session, round_id: str) -> list[dict[str, Any]]:
    """Returns the errors of the round's rejected assignments, the first rejection in front."""
    query = (
        select(Assignment.error)
        .where(Assignment.round_id == round_id, Assignment.state == AssignmentState.REJECTED)
        .order_by(Assignment.updated_at, Assignment.id)
    )
    return [error for error in s.scalars(query) if error is not None]


def refuse(s: Session, round_id: str, refused: Mapping[str, dict[str, Any]]) -> None:
    """Moves accepted → rejected for the participants left out of the round; errors are by name."""
    for participant, error in refused.items():
        accepted = Assignment.participant == participant, Assignment.state == AssignmentState.ACCEPTED
        s.execute(
            update(Assignment)
            .where(Assignment.round_id == round_id, *accepted)
            .values(state=AssignmentState.REJECTED, version=Assignment.version + 1, error=error)
        )


def reject_revoked(s: Session, round_id: str, error: dict[str, Any]) -> list[str]:
    """Rejects the revoked participants' unfinished assignments of the round. Returns the participants' names."""
    revoked = select(Participant.id).where(Participant.revoked_at.is_not(None))
    return _reject(s, round_id, error, Assignment.participant_id.in_(revoked))


def reject_some(s: Session, round_id: str, participants: Collection[str], error: dict[str, Any]) -> None:
    """Rejects these participants' unfinished assignments of the round."""
    _reject(s, round_id, error, Assignment.participant.in_(participants))


def sitting_out(s: Session, experiment_id: str, number: int, attempt: int) -> set[str]:
    """Returns the participants that failed in the previous attempt at the round: rejected, or real and silent.

    Of a secure sum with too few deals only rejected ones failed: the others have dealt.
    """
    waited = Round.frozen_at.is_(None), Round.stage.is_distinct_from(SumStage.DEAL)
    silent = and_(*waited, Assignment.state == AssignmentState.EXPIRED, Assignment.kind == ParticipantKind.EDGE)
    query = (
        select(Assignment.participant)
        .join(Round, Round.id == Assignment.round_id)
        .where(Round.experiment_id == experiment_id, Round.number == number, Round.attempt == attempt - 1)
        .where(or_(Assignment.state == AssignmentState.REJECTED, silent))
    )
    return set(s.scalars(query))


def _reject(s: Session, round_id: str, error: dict[str, Any], *criteria: ColumnElement[bool]) -> list[str]:
    rejected = s.execute(
        update(Assignment)
        .where(Assignment.round_id == round_id, Assignment.state.in_(_UNFINISHED), *criteria)
        .values(
            state=AssignmentState.REJECTED,
            version=Assignment.version + 1,
            fence=Assignment.fence + 1,
            lease_until=None,
            error=error,
        )
        .returning(Assignment.participant)
    )
    return sorted(rejected.scalars())


def _take_from_holders(s: Session, round_id: str, after: AssignmentState, *criteria: ColumnElement[bool]) -> None:
    s.execute(
        update(Assignment)
        .where(Assignment.round_id == round_id, Assignment.state.in_(_UNFINISHED), *criteria)
        .values(state=after, version=Assignment.version + 1, fence=Assignment.fence + 1, lease_until=None)
    )


def _ran_out() -> ColumnElement[bool]:
    return and_(Assignment.state == AssignmentState.LEASED, Assignment.lease_until <= utcnow())


def _free() -> ColumnElement[bool]:
    return or_(Assignment.state == AssignmentState.PENDING, _ran_out())
