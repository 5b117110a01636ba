"""Who is asking: the administrator, by token or by the cookie of a session, or a participant by its own token.

The dependencies below deny by default. Each declares the security schemes it takes, so that the OpenAPI document says
of every operation who may call it.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from fastapi import Depends, Request, Security
from fastapi.openapi.models import APIKey, APIKeyIn
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.security.base import SecurityBase

from ferret_api.context import Context, ContextDep
from ferret_api.same_origin import is_same_origin
from ferret_api.schemas import ExperimentId
from ferret_core.protocol.errors import FerretError
from ferret_db import tables
from ferret_db.repositories import audit, participants, sessions


class SessionCookie(SecurityBase):
    """The cookie set by ``POST /session``. Its name differs per installation, since cookies ignore ports."""

    def __init__(self) -> None:
        self.scheme_name = "session"
        self.model = APIKey.model_validate(
            {
                "in": APIKeyIn.cookie,
                "name": "ferret_instance",
                "description": "Set by `POST /session`; named `ferret_` and the `instance` of `GET /info`",
            }
        )

    def __call__(self, context: ContextDep, request: Request) -> str | None:
        return request.cookies.get(context.admin.cookie)


_admin = HTTPBearer(scheme_name="admin", description="The admin token", auto_error=False)
_participant = HTTPBearer(scheme_name="participant", description="A participant's token", auto_error=False)

Bearer = HTTPAuthorizationCredentials | None
AdminBearer = Annotated[HTTPAuthorizationCredentials | None, Security(_admin)]
ParticipantBearer = Annotated[HTTPAuthorizationCredentials | None, Security(_participant)]
Session = Annotated[str | None, Security(SessionCookie())]


class Identity(NamedTuple):
    """A participant, as its token names it."""

    id: str
    name: str
    experiment_id: str


def require_admin(request: Request, context: ContextDep, bearer: AdminBearer, session: Session) -> str:
    """Lets the administrator pass, and says under which name the audit log knows who it is."""
    if not _is_admin(request, context, bearer, session):
        _identify(context, bearer)
        raise FerretError("auth.forbidden", "a participant's token gives no access to this; use the admin token")
    return audit.ADMIN


def require_participant(context: ContextDep, bearer: ParticipantBearer) -> Identity:
    """Lets participants pass, and says which one it is."""
    if bearer is not None and context.admin.is_token(bearer.credentials):
        raise FerretError("auth.forbidden", "this is for participants; use the token that POST /participants gave")
    return _identify(context, bearer)


def require_reader(
    experiment_id: ExperimentId,
    request: Request,
    context: ContextDep,
    bearer: AdminBearer,
    session: Session,
    participant: ParticipantBearer,
) -> None:
    """Lets the administrator pass, and participants to their own experiment."""
    if _is_admin(request, context, bearer, session):
        return
    if _identify(context, participant).experiment_id != experiment_id:
        raise FerretError("auth.forbidden", f"this token belongs to another experiment than {experiment_id}")


AdminOnly = Depends(require_admin)
Admin = Annotated[str, Depends(require_admin)]
ReaderOnly = Depends(require_reader)
Participant = Annotated[Identity, Depends(require_participant)]


def _is_admin(
    request: Request, context: Context, bearer: HTTPAuthorizationCredentials | None, session: str | None
) -> bool:
    if bearer is not None:
        if found := context.admin.is_token(bearer.credentials):
            context.limits.recognise(bearer.credentials)
            context.limits.admit_user(bearer.credentials)
        return found
    return session is not None and _is_signed_in(request, context, session)


def _is_signed_in(request: Request, context: Context, session: str) -> bool:
    with context.database.read() as s:
        if not sessions.holds(s, session, context.admin.fingerprint):
            return False
    if not is_same_origin(request, context.settings.public_url):
        raise FerretError(
            "auth.cross_site",
            f"Origin = {request.headers.get('origin')!r} is not Host = {request.headers.get('host')!r}: use the "
            "dashboard of this service; a proxy in front must pass the Host on, or be FERRET_PUBLIC_URL",
        )
    context.limits.recognise(session)
    context.limits.admit_user(session)
    return True


def _identify(context: Context, bearer: HTTPAuthorizationCredentials | None) -> Identity:
    if bearer is None:
        raise FerretError("auth.missing", "send the header `Authorization: Bearer TOKEN`, or sign in at /")
    with context.database.read() as session:
        found = participants.by_token(session, bearer.credentials)
        if found is None:
            raise FerretError(
                "auth.invalid",
                "this server does not know the token; use the one in FERRET_HOME/admin.token on the server",
            )
    if found.revoked_at is not None:
        context.limits.forget(bearer.credentials)
        raise _revoked(found)
    context.limits.recognise(bearer.credentials)
    context.limits.admit_participant(found.id)
    return Identity(found.id, found.name, found.experiment_id)


def _revoked(participant: tables.Participant) -> FerretError:
    reason = f": {participant.revoked_for}" if participant.revoked_for else ""
    return FerretError(
        "participant.revoked",
        f"{participant.name} was removed from {participant.experiment_id}{reason}; what was accepted from it stays in "
        "the ledger, and nothing more is taken",
    )
