"""Participation: short rows for many rounds at a time, and one participant's rounds in full."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from ferret_core.protocol.states import AssignmentState, RoundState
from ferret_db.pagination import Page, page, seek
from ferret_db.tables import Assignment, Contribution, Rejection, Round

MOST_CELLS = 50_000
"""Maximum cells read for several rounds. A single round is always read whole."""


class Stage(NamedTuple):
    """The last attempt at a round."""

    number: int
    attempt: int
    state: RoundState


class ParticipationCell(NamedTuple):
    """One participant's part in one attempt at a round.

    ``code`` is the reason of a rejection. ``seconds`` is the training time, 0 if not reported.
    """

    round: int
    participant: str
    state: AssignmentState
    code: str | None
    seconds: float | None
    size: int | None
    loss: float | None


class RejectionSummary(NamedTuple):
    """A refused upload, whatever the assignment's result."""

    round: int
    participant: str
    code: str


class ParticipationRows(NamedTuple):
    """Rounds in order of their numbers, with ``cells`` by round and attempt; a participant's last cell counts.

    ``more``: other rounds follow.
    """

    stages: list[Stage]
    cells: list[ParticipationCell]
    refusals: list[RejectionSummary]
    more: bool


class RoundAssignment(NamedTuple):
    """An assignment with its round, its accepted contribution, and its refused uploads, latest last."""

    assignment: Assignment
    round: Round
    contribution: Contribution | None
    refusals: list[Rejection]


def grid(s: Session, experiment_id: str, after: int, limit: int) -> ParticipationRows:
    """Returns rounds with numbers above ``after``: at most ``limit``, and at most :data:`MOST_CELLS` cells."""
    most = max(1, min(limit, MOST_CELLS // max(1, _size(s, experiment_id, after + 1))))
    found = _stages(s, experiment_id, after, after + most + 1)
    stages = [stage for stage in found if stage.number <= after + most]
    between = after, after + most
    return ParticipationRows(
        stages, _cells(s, experiment_id, *between), _refusals(s, experiment_id, *between), found != stages
    )


def timeline(
    s: Session, experiment_id: str, participant: str, limit: int, cursor: str | None = None
) -> Page[RoundAssignment]:
    """Returns all assignments of the participant, every attempt, newest first."""
    # Through the rounds: the index covers round and participant, never the participant alone.
    query = (
        select(Assignment, Round, Contribution)
        .select_from(Round)
        .join(Assignment, Assignment.round_id == Round.id)
        .outerjoin(Contribution, Contribution.assignment_id == Assignment.id)
        .where(Round.experiment_id == experiment_id, Assignment.participant == participant)
    )
    rows = s.execute(seek(query, (Round.number, Round.attempt), cursor, limit, descending=True)).all()
    found = page(rows, limit, lambda row: (row[1].number, row[1].attempt))
    refused = _refused(s, [assignment.id for assignment, _, _ in found.items])
    items = [
        RoundAssignment(asked, round_, accepted, refused.get(asked.id, [])) for asked, round_, accepted in found.items
    ]
    return Page(items, found.next_cursor)


def _size(s: Session, experiment_id: str, number: int) -> int:
    query = select(func.count()).select_from(Assignment)
    return s.scalars(query.where(Assignment.experiment_id == experiment_id, Assignment.round == number)).one()


def _stages(s: Session, experiment_id: str, after: int, last: int) -> list[Stage]:
    query = (
        select(Round.number, Round.attempt, Round.state)
        .where(Round.experiment_id == experiment_id, Round.number > after, Round.number <= last)
        .order_by(Round.number, Round.attempt)
    )
    return list({row.number: Stage(*row) for row in s.execute(query)}.values())


def _cells(s: Session, experiment_id: str, after: int, last: int) -> list[ParticipationCell]:
    query = (
        select(
            Assignment.round,
            Assignment.participant,
            Assignment.state,
            Assignment.error["code"].as_string(),
            Assignment.seconds,
            Contribution.size,
            Contribution.metrics["train_loss"].as_float(),
        )
        .join(Round, Round.id == Assignment.round_id)
        .outerjoin(Contribution, Contribution.assignment_id == Assignment.id)
        .where(Assignment.experiment_id == experiment_id, Assignment.round > after, Assignment.round <= last)
        .order_by(Assignment.round, Round.attempt)
    )
    return [ParticipationCell(*row) for row in s.execute(query)]


def _refusals(s: Session, experiment_id: str, after: int, last: int) -> list[RejectionSummary]:
    query = (
        select(Rejection.round, Rejection.participant, Rejection.code)
        .where(Rejection.experiment_id == experiment_id, Rejection.round > after, Rejection.round <= last)
        .order_by(Rejection.round, Rejection.updated_at, Rejection.code)
    )
    return [RejectionSummary(*row) for row in s.execute(query)]


def _refused(s: Session, assignment_ids: Collection[str]) -> dict[str, list[Rejection]]:
    query = select(Rejection).where(Rejection.assignment_id.in_(assignment_ids))
    found: dict[str, list[Rejection]] = {}
    for rejection in s.scalars(query.order_by(Rejection.updated_at, Rejection.code)):
        found.setdefault(rejection.assignment_id, []).append(rejection)
    return found
