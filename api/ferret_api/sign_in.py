"""What every way to sign in ends with: a session and its cookie, or a failure in the audit log."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response
from sqlalchemy.orm import Session

from ferret_api.context import Context
from ferret_db.repositories import audit, sessions


def open_session(s: Session, user_id: str, request: Request, response: Response, context: Context, **told: Any) -> None:
    """Begins a session of the user, in a cookie that scripts cannot read; ``told`` goes to the audit log."""
    seconds = context.settings.session_seconds
    secret = sessions.begin(s, user_id, context.admin.fingerprint, seconds)
    audit.record(s, user_id, "session.opened", sessions.name_of(secret), address=address(request), **told)
    response.set_cookie(
        context.admin.cookie,
        secret,
        max_age=seconds,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


def record_failure(request: Request, context: Context, **told: Any) -> None:
    """Tells the audit log, unless it was just told of this address."""
    place = address(request)
    if (unlisted := context.failed_sign_ins.count(place)) is not None:
        with context.database.begin() as s:
            audit.record(s, audit.NOBODY, "sign_in.failed", "", address=place, unlisted=unlisted, **told)


def address(request: Request) -> str | None:
    return request.client.host if request.client else None
