"""Refused uploads, counted by assignment and reason, so that many take no more space than one."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_db.pagination import Page, page, seek
from ferret_db.tables import Assignment, Rejection

DETAIL_LENGTH = 1000


def record(s: Session, assignment: Assignment, error: FerretError) -> None:
    """Counts an upload for the assignment that ``error`` refused. The caller has locked the experiment."""
    detail = _plain(error.detail)
    counted = s.execute(
        update(Rejection)
        .where(Rejection.assignment_id == assignment.id, Rejection.code == error.code)
        .values(count=Rejection.count + 1, detail=detail)
        .returning(Rejection.count)
    )
    if counted.one_or_none() is None:
        s.add(_first(assignment, error.code, detail))
        s.flush()


def count(s: Session, assignment_id: str, codes: Collection[str]) -> int:
    """Counts the assignment's uploads that were refused for one of these reasons."""
    query = select(func.sum(Rejection.count)).where(Rejection.assignment_id == assignment_id, Rejection.code.in_(codes))
    return int(s.scalars(query).one() or 0)


def list_page(
    s: Session, experiment_id: str, limit: int, cursor: str | None = None, *, round: int | None = None
) -> Page[Rejection]:
    """Lists one row per assignment and reason, by round, then participant."""
    query = select(Rejection).where(Rejection.experiment_id == experiment_id)
    if round is not None:
        query = query.where(Rejection.round == round)
    columns = (Rejection.round, Rejection.participant, Rejection.assignment_id, Rejection.code)
    rows = s.scalars(seek(query, columns, cursor, limit)).all()
    return page(rows, limit, lambda row: (row.round, row.participant, row.assignment_id, row.code))


def _first(assignment: Assignment, code: str, detail: str) -> Rejection:
    return Rejection(
        assignment_id=assignment.id,
        code=code,
        experiment_id=assignment.experiment_id,
        round=assignment.round,
        participant=assignment.participant,
        detail=detail,
    )


def _plain(text: str) -> str:
    """Returns text that every database accepts: parts of it came with the upload, with any content and length."""
    return "".join(character if character.isprintable() else "�" for character in text[:DETAIL_LENGTH])
