"""Results of a sign-in: a session with its cookie, or a failure in the audit log."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response
from sqlalchemy.orm import Session

from ferret_api.auth import cookies
from ferret_api.context import Context
from ferret_db.repositories import audit, sessions
from ferret_db.tables import UserToken


def open_session(
    s: Session,
    user_id: str,
    request: Request,
    response: Response,
    context: Context,
    *,
    token: UserToken | None = None,
    **told: Any,
) -> None:
    """Begins a session of the user and sets its cookie, which scripts cannot read.

    ``told`` is added to the entry of the audit log. ``token`` is the token that created the sign-in link, if any.
    """
    place = address(request)
    begun = sessions.begin(
        s, user_id, context.admin.fingerprint, context.settings.session_seconds, token=token, address=place
    )
    audit.record(s, user_id, "session.opened", sessions.name_of(begun.secret), address=place, **told)
    cookies.write(response, request, context.admin.cookie, begun.secret, int(begun.seconds))


def record_failure(request: Request, context: Context, **told: Any) -> None:
    """Writes an entry to the audit log, unless one about this address was just written."""
    place = address(request)
    if (unlisted := context.failed_sign_ins.count(place)) is not None:
        with context.database.begin() as s:
            audit.record(s, audit.NOBODY, "sign_in.failed", "", address=place, unlisted=unlisted, **told)


def address(request: Request) -> str | None:
    return request.client.host if request.client else None
