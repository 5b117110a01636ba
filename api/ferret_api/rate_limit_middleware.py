"""ASGI middleware that refuses callers above their rate limit before any other work is done."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ferret_api.auth import cookies
from ferret_api.context import Context
from ferret_api.http.errors import problem
from ferret_api.limits.rate_limits import RateLimitExceeded
from ferret_api.schemas import PREFIX

CODES = {f"{PREFIX}/participants", f"{PREFIX}/enrolments:inspect"}
SIGN_IN = {f"{PREFIX}/session", f"{PREFIX}/session/oidc"}
_COUNTED = "ferret.failure_counted"


class RateLimitMiddleware:
    """Rate limits of unrecognised callers and of failures, by address.

    A recognised credential passes, except on routes where credentials can be guessed."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        context: Context = scope["app"].state.context
        limits, credential, address = context.limits, _credential(request, context), _address(scope)
        guess = _is_guess(scope)
        if guess or credential is None or not limits.recognises(credential):
            try:
                limits.admit_stranger(address)
            except RateLimitExceeded as error:
                await problem(request, error)(scope, receive, send)
                return
        refused = False

        async def send_noted(message: Message) -> None:
            nonlocal refused
            if refused:
                return
            if message["type"] == "http.response.start" and _failed(scope, message["status"], credential):
                if credential is not None and not guess:
                    limits.forget(credential)
                try:
                    await count_attempt(scope, context)
                except RateLimitExceeded as error:  # the response must not reveal that the guess was wrong
                    refused = True
                    await problem(request, error)(scope, receive, send)
                    return
            await send(message)

        await self.app(scope, receive, send_noted)


async def count_attempt(scope: Scope, context: Context) -> None:
    """Counts the request once as a failure of its address; raises ``request.too_many`` beyond the limit.

    Attempts with a password are counted before the password is checked, all others after they fail.
    """
    if not scope.get(_COUNTED):
        scope[_COUNTED] = True
        await context.limits.count_failure(_address(scope))


def _address(scope: Scope) -> str:
    return scope["client"][0] if scope.get("client") else ""


def _credential(request: Request, context: Context) -> str | None:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token:
        return token
    return cookies.read(request, context.admin.cookie)


def _is_guess(scope: Scope) -> bool:
    """Returns True if the body may be a guess of a password, a link or a code. Credentials in headers do not count."""
    return scope["method"] == "POST" and scope["path"] in CODES | SIGN_IN


def _failed(scope: Scope, status: int, credential: str | None) -> bool:
    """Returns True if the request had a wrong credential. A browser without a session sends none."""
    return (status == 401 and (credential is not None or scope["path"] in SIGN_IN)) or (
        status == 403 and scope["path"] in CODES
    )
