"""Accepted uploads, and the joined view of assignments and their uploads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import select, tuple_, update
from sqlalchemy.orm import Session

from ferret_core.protocol.states import AssignmentState, RoundState
from ferret_db.pagination import Page, page, seek
from ferret_db.tables import Assignment, Contribution, Round


class Report(NamedTuple):
    """An assignment, its round's attempt, and its accepted contribution, if there is one."""

    assignment: Assignment
    attempt: int
    contribution: Contribution | None


class Key(NamedTuple):
    """An idempotency key, unique per participant."""

    experiment_id: str
    participant: str
    text: str


def add_all(s: Session, rows: Sequence[Contribution]) -> None:
    s.add_all(rows)
    s.flush()


def by_idempotency_keys(s: Session, keys: Sequence[Key]) -> dict[Key, Contribution]:
    """Returns the contribution accepted under each key, the latest if there are several."""
    if not keys:
        return {}
    used = tuple_(Contribution.experiment_id, Contribution.participant, Contribution.idempotency_key)
    query = select(Contribution).where(used.in_(keys)).order_by(Contribution.round)
    found = s.scalars(query)
    return {Key(row.experiment_id, row.participant, row.idempotency_key or ""): row for row in found}


def of_round(s: Session, round_id: str) -> list[Contribution]:
    """Returns the accepted contributions of a round in participant order. Once frozen, this set is aggregated."""
    query = select(Contribution).where(Contribution.round_id == round_id).order_by(Contribution.participant)
    return list(s.scalars(query))


def attempts(s: Session, experiment_id: str, number: int, participant: str) -> list[Round]:
    """Returns the attempts at the round that accepted a contribution of the participant, in order."""
    query = (
        select(Round)
        .join(Contribution, Contribution.round_id == Round.id)
        .where(Round.experiment_id == experiment_id, Round.number == number, Contribution.participant == participant)
        .order_by(Round.attempt)
    )
    return list(s.scalars(query))


def digests_of_round(s: Session, round_id: str) -> list[tuple[str, str]]:
    """Returns the participants of :func:`of_round` with the digests of their contributions."""
    query = select(Contribution.participant, Contribution.digest).where(Contribution.round_id == round_id)
    return [(participant, digest) for participant, digest in s.execute(query.order_by(Contribution.participant))]


def of_experiment(s: Session, experiment_id: str) -> list[Contribution]:
    """Returns all accepted contributions by round."""
    query = select(Contribution).where(Contribution.experiment_id == experiment_id)
    return list(s.scalars(query.order_by(Contribution.round, Contribution.participant)))


def note_factors(s: Session, round_id: str, factors: Mapping[str, float]) -> None:
    """Stores the factor that each clipped contribution of the round was scaled by."""
    for participant, factor in factors.items():
        s.execute(
            update(Contribution)
            .where(Contribution.round_id == round_id, Contribution.participant == participant)
            .values(factor=factor)
        )


def memory_of(s: Session, experiment_id: str, participant: str, before: int) -> str | None:
    """Returns the digest of a simulated client's memory from its last committed round ``before`` a round.

    Rounds that left its contribution out do not count.
    """
    query = (
        select(Contribution.memory_digest)
        .join(Round, Round.id == Contribution.round_id)
        .join(Assignment, Assignment.id == Contribution.assignment_id)
        .where(Assignment.state == AssignmentState.ACCEPTED)
        .where(Contribution.experiment_id == experiment_id, Contribution.participant == participant)
        .where(Round.state == RoundState.COMMITTED, Contribution.round < before)
        .order_by(Contribution.round.desc())
        .limit(1)
    )
    return s.scalars(query).one_or_none()


def list_page(
    s: Session, experiment_id: str, limit: int, cursor: str | None = None, *, round: int | None = None
) -> Page[Report]:
    """Lists one row per assignment, leased and rejected ones too, by round, attempt and participant."""
    query = (
        select(Assignment, Round.attempt, Contribution)
        .join(Round, Round.id == Assignment.round_id)
        .outerjoin(Contribution, Contribution.assignment_id == Assignment.id)
        .where(Assignment.experiment_id == experiment_id)
    )
    if round is not None:
        query = query.where(Assignment.round == round)
    columns = (Assignment.round, Round.attempt, Assignment.participant)
    rows = [Report(*row) for row in s.execute(seek(query, columns, cursor, limit))]
    return page(rows, limit, lambda row: (row.assignment.round, row.attempt, row.assignment.participant))
