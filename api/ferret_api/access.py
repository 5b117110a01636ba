"""Authentication and authorization of users, by token or session cookie, and of participants, by token.

Each endpoint depends on one of the rules below, which admits the callers it names and refuses all others. The OpenAPI
document contains the rule as ``x-ferret-roles``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeVar

from fastapi import Depends, Request, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.openapi.models import APIKey, APIKeyIn
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.security.base import SecurityBase

from ferret_api.auth import cookies
from ferret_api.context import Context, WholeContext
from ferret_api.http.csrf import SAFE, is_same_origin
from ferret_api.schemas import ExperimentId
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.roles import EVERY_SCOPE, Role, Scope
from ferret_db import tables
from ferret_db.database import Database
from ferret_db.repositories import participants, sessions, user_tokens, users
from ferret_db.row_visibility import EVERYTHING, FOR_PARTICIPANTS, Reach

ANYONE, PARTICIPANT = "anyone", "participant"
F = TypeVar("F", bound=Callable[..., Any])


class SessionCookie(SecurityBase):
    """The cookie set by ``POST /session``. Its name differs per installation, since cookies ignore ports."""

    def __init__(self) -> None:
        self.scheme_name = "session"
        self.model = APIKey.model_validate(
            {
                "in": APIKeyIn.cookie,
                "name": "ferret_instance",
                "description": "Set by `POST /session`. Its name is `ferret_` and the `instance` of `GET /info`; over "
                "https it has the prefix `__Host-`",
            }
        )

    async def __call__(self, context: WholeContext, request: Request) -> str | None:
        return cookies.read(request, context.admin.cookie)


_user = HTTPBearer(scheme_name="user", description="A user's token, or the admin token", auto_error=False)
_participant = HTTPBearer(scheme_name="participant", description="A participant's token", auto_error=False)

Bearer = HTTPAuthorizationCredentials | None
UserBearer = Annotated[HTTPAuthorizationCredentials | None, Security(_user)]
ParticipantBearer = Annotated[HTTPAuthorizationCredentials | None, Security(_participant)]
Session = Annotated[str | None, Security(SessionCookie())]


class Caller(NamedTuple):
    """A user, with the scopes of the credential in the request. ``id`` identifies the user in the audit log.

    ``database`` shows the experiments of the user's projects, and all experiments to administrators. ``token`` is the
    user's token in the request, or the one that created the session. Everything created with a token ends with it.
    It is None for the admin token and for a sign-in by password.
    """

    id: str
    name: str
    role: Role
    scopes: frozenset[Scope]
    database: Database
    token: tables.UserToken | None = None


class Identity(NamedTuple):
    """A participant, identified by its token. A ``pending`` one may only check whether it has been approved."""

    id: str
    name: str
    experiment_id: str
    pending: bool


def rule(*roles: str) -> Callable[[F], F]:
    """Marks a dependency as a rule that admits only these roles."""

    def mark(dependency: F) -> F:
        setattr(dependency, "roles", roles)  # noqa: B010 - a function's own attribute
        return dependency

    return mark


class Users:
    """Dependency that admits users with at least the role ``least``, and returns the caller.

    The token needs ``scope``, by default that of the request's method: read or write.
    """

    def __init__(self, least: Role, scope: Scope | None = None) -> None:
        self.least = least
        self.scope = scope
        self.roles = tuple(role.value for role in Role if role.covers(least))

    def __call__(self, request: Request, context: WholeContext, bearer: UserBearer, session: Session) -> Caller:
        caller = _user_of(request, context, bearer, session)
        if caller is None:
            _identify(context, bearer)
            detail = "a participant's token gives no access to this; use a user's token, or the admin token"
            raise FerretError("auth.forbidden", detail)
        _require(self.least, caller, self.scope or _scope_of(request))
        return caller


@rule(ANYONE)
async def anyone() -> None:
    """Admits every caller, without credentials."""


@rule(PARTICIPANT)
def require_participant(context: WholeContext, bearer: ParticipantBearer) -> Identity:
    """Admits approved participants and returns the participant."""
    return require_approved(require_enrolled(context, bearer))


@rule(PARTICIPANT)
def require_enrolled(context: WholeContext, bearer: ParticipantBearer) -> Identity:
    """Admits all participants, including pending ones."""
    if bearer is not None and _is_users(context, bearer.credentials):
        _by_token(context, bearer.credentials)
        raise FerretError("auth.forbidden", "this is for participants; use the token that POST /participants gave")
    return _identify(context, bearer)


@rule(PARTICIPANT)
async def participant_later() -> None:
    """Marks an endpoint that calls :func:`participant_token` itself."""


async def participant_token(context: Context, bearer: Bearer) -> str:
    """Returns the token in the request, for :func:`identity`. Raises if it is missing or a user's."""
    if bearer is None or _is_users(context, bearer.credentials):
        await run_in_threadpool(require_enrolled, context, bearer)
        raise AssertionError("a caller without a participant's token was admitted")
    return bearer.credentials


def identity(context: Context, token: str, found: tables.Participant | None) -> Identity:
    """Returns the participant of the token from its row ``found``.

    Raises ``auth.invalid`` without a row, ``participant.refused``, ``participant.revoked`` and ``request.too_many``."""
    if found is None:
        raise FerretError(
            "auth.invalid",
            "this server does not know the token; use the token in FERRET_HOME/admin.token on the server",
        )
    if found.revoked_at is not None:
        context.limits.forget(token)
        raise _refused(found) if found.pending else _revoked(found)
    context.limits.recognise(token)
    context.limits.admit_participant(found.id)
    return Identity(found.id, found.name, found.experiment_id, found.pending)


def require_approved(participant: Identity) -> Identity:
    """Returns the participant; raises ``participant.pending`` if it waits for approval."""
    if participant.pending:
        detail = f"{participant.name} takes part in {participant.experiment_id} once a researcher has approved it"
        raise FerretError("participant.pending", f"{detail}; poll GET /participant/assignment until then")
    return participant


class Reader(NamedTuple):
    """A user, or a participant of the experiment, with a database limited to the rows that it may see."""

    id: str
    database: Database
    is_participant: bool


@rule(*Role, PARTICIPANT)
def require_reader(
    experiment_id: ExperimentId,
    request: Request,
    context: WholeContext,
    bearer: UserBearer,
    session: Session,
    participant: ParticipantBearer,
) -> Reader:
    """Admits users, and participants to their own experiment, and returns the reader."""
    if caller := _user_of(request, context, bearer, session):
        _require(Role.VIEWER, caller, _scope_of(request))
        return Reader(caller.id, caller.database, is_participant=False)
    reader = _identify(context, participant)
    if reader.experiment_id != experiment_id:
        raise FerretError("auth.forbidden", f"this token belongs to another experiment than {experiment_id}")
    require_approved(reader)
    return Reader(reader.id, context.database.within(FOR_PARTICIPANTS), is_participant=True)


Reading = Annotated[Reader, Depends(require_reader)]


async def _database_of(reader: Reading) -> Database:
    return reader.database


_viewer, _researcher, _admin = Users(Role.VIEWER), Users(Role.RESEARCHER), Users(Role.ADMIN)

Anyone = Depends(anyone)
ViewerOnly = Depends(_viewer)
Viewer = Annotated[Caller, ViewerOnly]
Asker = Annotated[Caller, Depends(Users(Role.VIEWER, Scope.READ))]
"""A viewer who reads by ``POST``, which keeps the question out of the URL."""
Scraper = Annotated[Caller, Depends(Users(Role.VIEWER, Scope.METRICS))]
AskingResearcher = Annotated[Caller, Depends(Users(Role.RESEARCHER, Scope.READ))]
Researcher = Annotated[Caller, Depends(_researcher)]
AdminOnly = Depends(_admin)
Admin = Annotated[Caller, AdminOnly]
Readable = Annotated[Database, Depends(_database_of)]
ParticipantLater = Depends(participant_later)
Participant = Annotated[Identity, Depends(require_participant)]


def _scope_of(request: Request) -> Scope:
    return Scope.READ if request.method in SAFE else Scope.WRITE


def _require(least: Role, caller: Caller, needed: Scope) -> None:
    if not caller.role.covers(least):
        detail = f"{caller.name} has the role {caller.role}, and this needs the role {least}"
        raise FerretError("auth.forbidden", f"{detail}: ask an administrator of the server")
    if not needed.within(caller.scopes):
        raise FerretError("auth.forbidden", f"this token has no scope {needed}: use one that has")


def _user_of(
    request: Request, context: Context, bearer: HTTPAuthorizationCredentials | None, session: str | None
) -> Caller | None:
    """Returns the user of the token or session; None without either, and for a token that may be a participant's."""
    if bearer is not None:
        return _by_token(context, bearer.credentials) if _is_users(context, bearer.credentials) else None
    return None if session is None else _signed_in(request, context, session)


def _is_users(context: Context, token: str) -> bool:
    return context.admin.is_token(token) or token.startswith(user_tokens.PREFIX)


def _by_token(context: Context, token: str) -> Caller:
    if context.admin.is_token(token):
        context.limits.recognise(token)
        context.limits.admit_user(token)
        return Caller(users.INSTALLATION, users.INSTALLATION, Role.ADMIN, EVERY_SCOPE, context.database)
    with context.database.read() as s:
        shown = user_tokens.shown(s, token)
    if shown is None:
        raise FerretError("auth.invalid", "this server does not know the token, or it was revoked; create another one")
    if shown.expired:
        raise FerretError("auth.invalid", f"the token expired at {shown.token.expires_at}; create another one")
    if not shown.user.enabled:
        raise FerretError("auth.invalid", f"the account of {shown.user.name} is disabled; ask an administrator")
    if shown.stale:
        with context.database.begin(flush=False) as s:
            user_tokens.used(s, shown.token.id)
    context.limits.recognise(token)
    context.limits.admit_user(token)
    return _caller(context, shown.user, frozenset(Scope(scope) for scope in shown.token.scopes), shown.token)


def _caller(context: Context, user: tables.User, scopes: frozenset[Scope], token: tables.UserToken | None) -> Caller:
    reach = EVERYTHING if user.role == Role.ADMIN else Reach.of_member(user.id)
    return Caller(user.id, user.name, user.role, scopes, context.database.within(reach), token)


def _signed_in(request: Request, context: Context, session: str) -> Caller | None:
    with context.database.read() as s:
        shown = sessions.shown(s, session, context.admin.fingerprint)
    if shown is None:
        return None
    if not is_same_origin(request, context.settings.public_url):
        raise FerretError(
            "auth.cross_site",
            f"Origin = {request.headers.get('origin')!r} is not Host = {request.headers.get('host')!r}: use the "
            "dashboard of this service; a proxy in front must pass the Host on, or be FERRET_PUBLIC_URL",
        )
    context.limits.recognise(session)
    context.limits.admit_user(session)
    return _caller(context, shown.user, EVERY_SCOPE, shown.token)


def _identify(context: Context, bearer: HTTPAuthorizationCredentials | None) -> Identity:
    if bearer is None:
        raise FerretError("auth.missing", "send the header `Authorization: Bearer TOKEN`, or sign in at /")
    with context.database.read() as s:
        found = participants.by_tokens(s, [bearer.credentials])
    return identity(context, bearer.credentials, found.get(bearer.credentials))


def _refused(participant: tables.Participant) -> FerretError:
    reason = f": {participant.revocation_reason}" if participant.revocation_reason else ""
    return FerretError(
        "participant.refused",
        f"{participant.display_name} was not approved for {participant.experiment_id}{reason}; nothing was taken from "
        "it, and nothing will be",
    )


def _revoked(participant: tables.Participant) -> FerretError:
    reason = f": {participant.revocation_reason}" if participant.revocation_reason else ""
    return FerretError(
        "participant.revoked",
        f"{participant.display_name} was removed from {participant.experiment_id}{reason}; its accepted contributions "
        "stay in the ledger, and further ones are refused",
    )
