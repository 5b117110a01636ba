"""Endpoints for sign-in with an OpenID Connect provider, which sends the browser back with a code."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import Field, model_validator
from sqlalchemy.orm import Session

from ferret_api import sign_in
from ferret_api.access import Anyone
from ferret_api.auth import cookies
from ferret_api.context import Context, ContextDep
from ferret_api.http.errors import problems
from ferret_api.oidc.provider import SIGN_IN_SECONDS, Flow, Person, Provider, refused
from ferret_api.schemas import PREFIX, Command
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.users import Authorization, SignInMethods
from ferret_core.protocol.roles import Role
from ferret_db import tables
from ferret_db.repositories import audit, users


class Callback(Command, json_schema_extra={"examples": [{"state": "3q2-7wAAAAA", "code": "4/0AX4XfWh"}]}):
    """Parameters of the provider's redirect."""

    state: str = Field(default="", max_length=200)
    code: str | None = Field(default=None, min_length=1, max_length=4000, repr=False)
    error: str | None = Field(default=None, min_length=1, max_length=200)
    error_description: str | None = Field(default=None, max_length=1000)

    @model_validator(mode="after")
    def _one(self) -> Callback:
        if (self.code is None) == (self.error is None):
            raise ValueError("give the code, or the error")
        return self


CALLBACK = "/sign-in/callback"
"""Dashboard page that receives browsers from the provider."""

router = APIRouter(prefix=PREFIX, tags=["system"])


async def _provider(request: Request) -> Provider:
    if (provider := request.app.state.provider) is None:
        raise FerretError("oidc.not_configured", "sign in with name and password; FERRET_OIDC_ISSUER sets a provider")
    return provider


ProviderDep = Annotated[Provider, Depends(_provider)]


@router.get("/sign-in", operation_id="get_sign_in", dependencies=[Anyone])
async def get_sign_in(request: Request) -> SignInMethods:
    """Returns the ways to sign in. Needs no credentials."""
    provider: Provider | None = request.app.state.provider
    return SignInMethods(provider=provider.settings.name if provider else None)


@router.post(
    "/sign-in/oidc",
    operation_id="begin_oidc_session",
    dependencies=[Anyone],
    responses=problems("oidc.not_configured", "oidc.unreachable", "oidc.unexpected"),
)
async def begin_oidc_session(
    provider: ProviderDep, request: Request, response: Response, context: ContextDep
) -> Authorization:
    """Begins a sign-in: sets a cookie and returns the provider's authorization URL. Needs no credentials."""
    flow = Flow.begin()
    url = await provider.authorization_url(flow, _redirect_uri(request, context))
    cookies.write(response, request, _cookie(context), flow.secret, SIGN_IN_SECONDS)
    return Authorization(url=url)


@router.post(
    "/session/oidc",
    operation_id="create_oidc_session",
    status_code=204,
    dependencies=[Anyone],
    responses=problems(
        "oidc.not_configured",
        "oidc.unreachable",
        "oidc.unexpected",
        "oidc.refused",
        "oidc.state_mismatch",
        "oidc.token_invalid",
        "oidc.clock_skew",
        "oidc.no_role",
        "user.disabled",
    ),
)
async def create_oidc_session(
    callback: Callback, provider: ProviderDep, request: Request, response: Response, context: ContextDep
) -> None:
    """Completes a sign-in: exchanges the provider's code for a session cookie. Needs no other credentials.

    The first sign-in creates an account. Each sign-in updates the role from the provider's claims. `oidc.no_role` if
    the claims give no role, `oidc.state_mismatch` if another browser began the sign-in, or more than ten minutes ago.
    """
    flow = Flow(cookies.read(request, _cookie(context)) or "")
    try:
        _require_same_browser(flow, callback)
        if callback.code is None:
            raise refused(callback.error, callback.error_description)
        person = await provider.person(flow, _redirect_uri(request, context), callback.code)
        await run_in_threadpool(_sign_in, person, request, response, context)
    except FerretError as error:
        if error.problem.status < 500:
            await run_in_threadpool(sign_in.record_failure, request, context, code=error.code, detail=error.detail)
        raise
    cookies.delete(response, request, _cookie(context))


def _sign_in(person: Person, request: Request, response: Response, context: Context) -> None:
    if person.role is None:
        _shut_out(person, context)
        groups = ", ".join(person.groups) or "nothing"
        detail = f"{person.name} is in {groups} at the provider, which gives no role here; ask an administrator"
        raise FerretError("oidc.no_role", detail)
    with context.database.begin() as s:
        user = _user_of(s, person, person.role)
        if not user.enabled:
            raise FerretError("user.disabled", f"the account {user.name} is disabled; ask an administrator")
        sign_in.open_session(s, user.id, request, response, context, issuer=person.issuer)


def _shut_out(person: Person, context: Context) -> None:
    """Ends the sessions and tokens of the person's account, and everything created with those tokens."""
    with context.database.begin() as s:
        user = users.of_identity(s, person.issuer, person.subject)
        if user is None:
            return
        ended = users.shut_out(s, user.id)
        if any(ended):
            details = {"role": Role.VIEWER.value, "sessions": ended.sessions, "tokens": ended.tokens}
            audit.record(s, user.id, "user.changed", user.id, **details, issuer=person.issuer)


def _user_of(s: Session, person: Person, role: Role) -> tables.User:
    """Returns the person's account. Creates it at the first sign-in, and sets its role to the provider's each time."""
    user = users.of_identity(s, person.issuer, person.subject)
    if user is None:
        user = users.create_of_identity(s, person.issuer, person.subject, person.name, role)
        details = {"name": user.name, "role": user.role.value, "issuer": person.issuer}
        audit.record(s, user.id, "user.created", user.id, **details)
    elif user.enabled and user.role != role:
        user = users.change(s, user.id, role=role)
        audit.record(s, user.id, "user.changed", user.id, role=role.value, issuer=person.issuer)
    return user


def _require_same_browser(flow: Flow, callback: Callback) -> None:
    if not flow.secret or not flow.is_state(callback.state):
        detail = "this browser did not begin this sign-in, or more than ten minutes ago, or under another address of "
        raise FerretError("oidc.state_mismatch", f"{detail}the service: sign in again")


def _redirect_uri(request: Request, context: Context) -> str:
    """Returns the callback page's URL for this browser. Its host name is an allowed one."""
    return (context.settings.public_url or str(request.base_url).rstrip("/")) + CALLBACK


def _cookie(context: Context) -> str:
    return f"{context.admin.cookie}_sign_in"
