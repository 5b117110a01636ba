"""Endpoints for the service itself: version, sign-in and health."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import Field, field_validator, model_validator

from ferret_api import sign_in
from ferret_api.access import Admin, Anyone, Scraper, Viewer, ViewerOnly
from ferret_api.auth import cookies, passwords
from ferret_api.context import Context, ContextDep
from ferret_api.http import trusted_hosts
from ferret_api.http.errors import problems
from ferret_api.rate_limit_middleware import count_attempt
from ferret_api.schemas import PREFIX, Command
from ferret_api.system import overview, prometheus
from ferret_core import __version__
from ferret_core.projection import FORMAT_VERSION as PROJECTION_VERSION
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.system import FormatVersions, Health, Info, Readiness, System
from ferret_core.protocol.resources.users import SignInLink
from ferret_core.protocol.roles import EVERY_SCOPE
from ferret_core.protocol.wire import FORMAT_VERSION
from ferret_db.repositories import audit, sessions, users
from ferret_db.tables import UserToken


class Login(
    Command,
    json_schema_extra={"examples": [{"name": "ada", "password": "the sentence until now"}]},  # nosec B105: an example
):
    """Request to sign in with name and password, or with the admin token."""

    name: str | None = Field(default=None, min_length=1, max_length=200)
    password: str | None = Field(default=None, min_length=1, max_length=200, repr=False)
    token: str | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        repr=False,
        description=("The admin token, or the token of a sign-in link"),
    )

    @field_validator("name")
    @classmethod
    def _small(cls, name: str | None) -> str | None:
        return name and name.lower()

    @model_validator(mode="after")
    def _one_way(self) -> Login:
        if (self.token is None) == (self.name is None) or (self.name is None) != (self.password is None):
            raise ValueError("give name and password, or the token")
        return self


LINK_SECONDS = 3600

api_router = APIRouter(prefix=PREFIX, tags=["system"])
root_router = APIRouter(tags=["system"])


@api_router.get("/info", operation_id="get_info", dependencies=[ViewerOnly])
def get_info(context: ContextDep) -> Info:
    """Returns name, version and backends of this service. Requires the role viewer."""
    return Info(
        name="ferret",
        version=__version__,
        instance=context.admin.fingerprint,
        database=urlsplit(context.settings.database_url).scheme.partition("+")[0],
        storage=urlsplit(context.settings.storage_url).scheme,
        formats=FormatVersions(wire=FORMAT_VERSION, projection=PROJECTION_VERSION),
    )


@api_router.get("/system", operation_id="get_system")
async def get_system(request: Request, caller: Admin, context: ContextDep) -> System:
    """Returns the status of components, queues, workers and disk, for operators. Requires the role admin.

    It includes host names and covers all projects."""
    return await run_in_threadpool(overview.look, context, caller.database, await request.app.state.readiness.get())


@api_router.post(
    "/session",
    operation_id="create_session",
    status_code=204,
    dependencies=[Anyone],
    responses=problems("auth.invalid", "password.invalid"),
)
async def create_session(login: Login, request: Request, response: Response, context: ContextDep) -> None:
    """Signs a browser in with name and password, a sign-in link or the admin token.

    The response sets the cookie of a new session, which scripts cannot read. `request.too_many` is returned
    immediately while too many passwords are being checked."""
    if login.token is not None:
        signed_in = await run_in_threadpool(_by_token, login.token, request, context)
    else:
        await count_attempt(request.scope, context)
        signed_in = await context.passwords.run(partial(_by_password, login, request, context), request)
    await run_in_threadpool(_open_session, signed_in, request, response, context)


class SignedIn(NamedTuple):
    """A user who signs in, with the secret of the sign-in link, if any, and the token that created the link."""

    user_id: str
    link: str | None = None
    token: UserToken | None = None


def _open_session(signed_in: SignedIn, request: Request, response: Response, context: Context) -> None:
    user_id, link, token = signed_in
    with context.database.begin() as s:
        if link and not sessions.redeem(s, link, context.admin.link_issuer):
            raise _no_token()  # another browser was faster
        sign_in.open_session(s, user_id, request, response, context, token=token, link=bool(link))


def _by_password(login: Login, request: Request, context: Context) -> SignedIn:
    """Returns the enabled user with this name and password; raises ``password.invalid`` without a match."""
    with context.database.read() as s:
        user = users.by_name(s, str(login.name))
    if passwords.is_right(str(login.password), user.password_hash if user else None) and user and user.enabled:
        return SignedIn(user.id)
    sign_in.record_failure(request, context)
    raise FerretError("password.invalid", "there is no enabled account of this name with this password")


def _by_token(token: str, request: Request, context: Context) -> SignedIn:
    if context.admin.is_token(token):
        return SignedIn(users.INSTALLATION)
    with context.database.read() as s:
        link = sessions.shown(s, token, context.admin.link_issuer)
    if link is None:
        sign_in.record_failure(request, context)
        raise _no_token()
    return SignedIn(link.user.id, token, link.token)


def _no_token() -> FerretError:
    return FerretError(
        "auth.invalid",
        "this is neither the admin token, which is in FERRET_HOME/admin.token on the server, nor a valid sign-in link: "
        "a link works once, within an hour; ferret dashboard prints a new one",
    )


@api_router.post("/session/link", operation_id="create_sign_in_link", status_code=201)
def create_sign_in_link(request: Request, caller: Viewer, context: ContextDep) -> SignInLink:
    """Creates a link that signs one browser in as the caller, once and within an hour.

    A link keeps lasting tokens out of addresses. Revoking the token that created it ends the link and its session.
    Requires a credential with every scope, since the session has them all; otherwise `auth.forbidden`."""
    if not caller.scopes >= EVERY_SCOPE:
        raise FerretError(
            "auth.forbidden", "this token lacks some scopes, and the link's session would have all: sign in"
        )
    place = sign_in.address(request)
    with context.database.begin() as s:
        link = sessions.begin(s, caller.id, context.admin.link_issuer, LINK_SECONDS, token=caller.token, address=place)
        audit.record(s, caller.id, "sign_in.link_made", sessions.name_of(link.secret), address=place)
    url = f"{trusted_hosts.address(context.settings, request)}/#ticket={link.secret}"
    return SignInLink(url=url, token=link.secret, expires_at=link.expires_at)


@api_router.delete("/session", operation_id="delete_session", status_code=204)
def delete_session(request: Request, response: Response, caller: Viewer, context: ContextDep) -> None:
    """Signs the browser out. Its session ends, so that a copied cookie no longer works. Requires the role viewer."""
    if session := cookies.read(request, context.admin.cookie):
        with context.database.begin() as s:
            if sessions.end(s, session):
                audit.record(
                    s, caller.id, "session.closed", sessions.name_of(session), address=sign_in.address(request)
                )
        context.limits.forget(session)
    cookies.delete(response, request, context.admin.cookie)


@root_router.get("/healthz", operation_id="get_health", dependencies=[Anyone])
async def get_health() -> Health:
    """Reports that the process is alive. Checks nothing else and needs no credentials."""
    return Health(status="ok")


@root_router.get(
    "/readyz",
    operation_id="get_readiness",
    dependencies=[Anyone],
    responses={503: {"description": "Some component is not available", "model": Readiness}},
)
async def get_readiness(request: Request, response: Response) -> Readiness:
    """Reports whether database, schema, broker and storage are usable. Needs no credentials.

    They are checked at most once a second."""
    found = await request.app.state.readiness.get()
    response.status_code = 200 if found.ready else 503
    return found


@root_router.get(
    "/metrics",
    operation_id="get_prometheus_metrics",
    response_class=Response,
    responses={
        200: {
            "description": "Metrics in the Prometheus text format",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    },
)
def get_prometheus_metrics(request: Request, caller: Scraper) -> Response:
    """Returns metrics for Prometheus: requests by route, and experiments, rounds, assignments and unsent messages by
    state.

    Administrators get the metrics of all projects, and other users only of their projects. Requires a token with the
    scope `metrics`."""
    return prometheus.respond(request.app.state.requests, caller.database)
