"""What every way to sign in ends with: a session and its cookie, or a failure in the audit log."""

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
    """Begins a session of the user, in a cookie that scripts cannot read; ``told`` goes to the audit log.

    ``token`` is the one that the sign-in link was made with, if any.
    """
    place = address(request)
    begun = sessions.begin(
        s, user_id, context.admin.fingerprint, context.settings.session_seconds, token=token, address=place
    )
    audit.record(s, user_id, "session.opened", sessions.name_of(begun.secret), address=place, **told)
    cookies.write(response, request, context.admin.cookie, begun.secret, int(begun.seconds))


def record_failure(request: Request, context: Context, **told: Any) -> None:
    """Writes an entry into the audit log, unless one about this address was just written."""
    place = address(request)
    if (unlisted := context.failed_sign_ins.count(place)) is not None:
        with context.database.begin() as s:
            audit.record(s, audit.NOBODY, "sign_in.failed", "", address=place, unlisted=unlisted, **told)


def address(request: Request) -> str | None:
    return request.client.host if request.client else None
