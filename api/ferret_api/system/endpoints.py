"""The service itself: what it is, how to sign in, whether it is well."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response

from ferret_api.auth import Anyone, Viewer, ViewerOnly
from ferret_api.context import Context, ContextDep
from ferret_api.problems import problems
from ferret_api.schemas import PREFIX
from ferret_api.system import prometheus
from ferret_api.system.schemas import Formats, Health, Info, Login, Readiness
from ferret_api.users import passwords
from ferret_core import __version__
from ferret_core.projection import FORMAT_VERSION as PROJECTION_VERSION
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.wire import FORMAT_VERSION
from ferret_db.repositories import audit, sessions, users

api_router = APIRouter(prefix=PREFIX, tags=["system"])
root_router = APIRouter(tags=["system"])


@api_router.get("/info", operation_id="get_info", dependencies=[ViewerOnly])
def get_info(context: ContextDep) -> Info:
    """Name, version and backends of this service."""
    return Info(
        name="ferret",
        version=__version__,
        instance=context.admin.fingerprint,
        database=urlsplit(context.settings.database_url).scheme.partition("+")[0],
        storage=urlsplit(context.settings.storage_url).scheme,
        formats=Formats(wire=FORMAT_VERSION, projection=PROJECTION_VERSION),
    )


@api_router.post(
    "/session",
    operation_id="create_session",
    status_code=204,
    dependencies=[Anyone],
    responses=problems("auth.invalid", "password.invalid"),
)
def create_session(login: Login, request: Request, response: Response, context: ContextDep) -> None:
    """Signs a browser in: name and password, or the admin token, become the cookie of a new session, which scripts
    cannot read."""
    user_id = _signed_in(login, request, context)
    seconds = context.settings.session_seconds
    with context.database.begin() as s:
        secret = sessions.begin(s, user_id, context.admin.fingerprint, seconds)
        audit.record(s, user_id, "session.opened", sessions.name_of(secret), address=_address(request))
    response.set_cookie(
        context.admin.cookie,
        secret,
        max_age=seconds,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


def _signed_in(login: Login, request: Request, context: Context) -> str:
    """Id of the user."""
    if login.token is not None:
        if context.admin.is_token(login.token):
            return users.INSTALLATION
        _record_failure(request, context)
        raise FerretError("auth.invalid", "this is not the admin token; it is in FERRET_HOME/admin.token on the server")
    with context.database.read() as s:
        user = users.by_name(s, str(login.name))
    if passwords.is_right(str(login.password), user.password_hash if user else None) and user and user.enabled:
        return user.id
    _record_failure(request, context)
    raise FerretError("password.invalid", "there is no enabled account of this name with this password")


def _record_failure(request: Request, context: Context) -> None:
    address = _address(request)
    if (unlisted := context.failed_sign_ins.count(address)) is not None:
        with context.database.begin() as s:
            audit.record(s, audit.NOBODY, "sign_in.failed", "", address=address, unlisted=unlisted)


def _address(request: Request) -> str | None:
    return request.client.host if request.client else None


@api_router.delete("/session", operation_id="delete_session", status_code=204)
def delete_session(request: Request, response: Response, caller: Viewer, context: ContextDep) -> None:
    """Signs the browser out: its session ends, and a copy of the cookie is worth nothing."""
    if session := request.cookies.get(context.admin.cookie):
        with context.database.begin() as s:
            if sessions.end(s, session):
                audit.record(s, caller.id, "session.closed", sessions.name_of(session), address=_address(request))
        context.limits.forget(session)
    response.delete_cookie(context.admin.cookie, httponly=True, samesite="strict")


@root_router.get("/healthz", operation_id="get_health", dependencies=[Anyone])
async def get_health() -> Health:
    """The process is alive; nothing else is checked."""
    return Health(status="ok")


@root_router.get(
    "/readyz",
    operation_id="get_readiness",
    dependencies=[Anyone],
    responses={503: {"description": "Some part is not available", "model": Readiness}},
)
async def get_readiness(request: Request, response: Response) -> Readiness:
    """Whether database, schema and broker can be used; looked at once a second at most."""
    found = await request.app.state.readiness.get()
    response.status_code = 200 if found.ready else 503
    return found


@root_router.get(
    "/metrics",
    operation_id="get_prometheus_metrics",
    dependencies=[ViewerOnly],
    response_class=Response,
    responses={
        200: {"description": "Figures for Prometheus", "content": {"text/plain": {"schema": {"type": "string"}}}}
    },
)
def get_prometheus_metrics(request: Request, context: ContextDep) -> Response:
    """Requests by route, and experiments, rounds, assignments and unsent messages by state."""
    return prometheus.respond(request.app.state.requests, context.database)
