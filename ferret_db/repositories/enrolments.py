"""Enrolment codes. Each works once, before it expires, unless revoked; repeated uses are counted.

A ``code`` here is its secret alone, without the part that names the server.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.errors import FerretError
from ferret_db import clock
from ferret_db.pagination import Page, page, seek
from ferret_db.tables import Enrolment

_FRESH = {"populate_existing": True}


def unused(s: Session, code: str) -> Enrolment:
    """Returns the enrolment of the code without spending it; raises the errors of :func:`use`."""
    found = s.scalars(select(Enrolment).where(*_good(code))).one_or_none()
    if found is None:
        raise _refusal(s, code)
    return found


def is_known(s: Session, code: str) -> bool:
    """Returns True if the code was ever created here, even if it is spent, revoked or expired."""
    return s.scalars(select(Enrolment.id).where(Enrolment.code_hash == _hash(code))).one_or_none() is not None


def use(s: Session, code: str, display_name: str) -> Enrolment:
    """Spends the code for the participant ``display_name``.

    Raises ``enrolment.used`` for a spent code, which its holder and the administrator should know of, and
    ``enrolment.invalid`` for an unknown, revoked or expired code.
    """
    used = update(Enrolment).where(*_good(code)).values(used_at=clock.utcnow(), used_by=display_name)
    spent = s.scalars(used.returning(Enrolment), execution_options=_FRESH).one_or_none()
    if spent is None:
        raise _refusal(s, code)
    return spent


def refuse(s: Session, code: str) -> Enrolment | None:
    """Counts that a spent code was presented again. Returns the code, or None if it is unknown."""
    again = update(Enrolment).where(Enrolment.code_hash == _hash(code), Enrolment.used_at.is_not(None))
    return s.scalars(
        again.values(refused=Enrolment.refused + 1).returning(Enrolment), execution_options=_FRESH
    ).one_or_none()


def revoke(s: Session, experiment_id: str, enrolment_id: str) -> tuple[Enrolment, bool]:
    """Also returns whether this call revoked it; a spent code stays as it is. Raises ``enrolment.not_found``."""
    its_own = Enrolment.id == enrolment_id, Enrolment.experiment_id == experiment_id
    revoked = s.execute(
        update(Enrolment)
        .where(*its_own, Enrolment.used_at.is_(None), Enrolment.revoked_at.is_(None))
        .values(revoked_at=clock.utcnow())
        .returning(Enrolment.id)
    ).one_or_none()
    query = select(Enrolment).where(*its_own)
    found = s.scalars(query, execution_options={"populate_existing": True}).one_or_none()
    if found is None:
        message = f"is no code of {experiment_id}; ferret code list lists them"
        raise FerretError.of_field("enrolment.not_found", "enrolment", enrolment_id, message)
    return found, revoked is not None


def revoke_group(s: Session, experiment_id: str, group: str) -> list[Enrolment]:
    """Revokes the group's unspent codes and returns them. Raises ``enrolment.not_found`` if it never had any."""
    of_group = Enrolment.experiment_id == experiment_id, Enrolment.group == group
    if s.scalars(select(Enrolment.id).where(*of_group).limit(1)).one_or_none() is None:
        message = f"is no group of codes of {experiment_id}; ferret code list lists them"
        raise FerretError.of_field("enrolment.not_found", "group", group, message)
    revoked = (
        update(Enrolment)
        .where(*of_group, Enrolment.used_at.is_(None), Enrolment.revoked_at.is_(None))
        .values(revoked_at=clock.utcnow())
    )
    return list(s.scalars(revoked.returning(Enrolment), execution_options=_FRESH))


def list_page(
    s: Session, experiment_id: str, limit: int, cursor: str | None = None, *, group: str | None = None
) -> Page[Enrolment]:
    """Lists the codes of the experiment or of the ``group``, newest first."""
    query = select(Enrolment).where(Enrolment.experiment_id == experiment_id)
    if group is not None:
        query = query.where(Enrolment.group == group)
    rows = list(s.scalars(seek(query, [Enrolment.created_at, Enrolment.id], cursor, limit, descending=True)))
    return page(rows, limit, lambda row: (row.created_at, row.id))


def _good(code: str) -> tuple[ColumnElement[bool], ...]:
    return (
        Enrolment.code_hash == _hash(code),
        Enrolment.used_at.is_(None),
        Enrolment.revoked_at.is_(None),
        Enrolment.expires_at > clock.utcnow(),
    )


def _refusal(s: Session, code: str) -> FerretError:
    found = s.scalars(select(Enrolment).where(Enrolment.code_hash == _hash(code))).one_or_none()
    if found is None or found.used_at is None:
        return FerretError("enrolment.invalid", "the code is unknown, revoked or expired; ask for a new one")
    return FerretError(
        "enrolment.used",
        f"somebody has joined with this code at {found.used_at:%Y-%m-%d %H:%M} UTC under the name {found.used_by}. If "
        "that was not you, tell the person who invited you at once: somebody else has your place. If it was you, join "
        "again from the machine and the FERRET_HOME that you joined from, or ask for a new code",
    )


def _hash(code: str) -> str:
    return digest_bytes(code.encode())
