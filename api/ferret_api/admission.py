"""Who asks too often is refused before anything is done for it. Pure ASGI."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ferret_api.context import Context
from ferret_api.errors import problem
from ferret_api.too_many import TooMany

ENROL = "enrol"
SIGN_IN = {"create_session", "create_oidc_session"}


class Admission:
    """Counts strangers and failures by address; whoever is recognised passes."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        context: Context = scope["app"].state.context
        limits, credential = context.limits, _credential(request, context)
        address = scope["client"][0] if scope.get("client") else ""
        if credential is None or not limits.recognises(credential):
            try:
                limits.admit_stranger(address)
            except TooMany as error:
                await problem(request, error)(scope, receive, send)
                return

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start" and _failed(scope, message["status"], credential):
                limits.failed(address)
                if credential is not None:
                    limits.forget(credential)
            await send(message)

        await self.app(scope, receive, send_noted)


def _credential(request: Request, context: Context) -> str | None:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and token:
        return token
    return request.cookies.get(context.admin.cookie)


def _failed(scope: Scope, status: int, credential: str | None) -> bool:
    """Whether a wrong credential was shown; a browser that has none yet has shown none."""
    operation = getattr(scope.get("route"), "operation_id", None)
    return (status == 401 and (credential is not None or operation in SIGN_IN)) or (
        status == 403 and operation == ENROL
    )
