"""ASGI middleware that gives every request an id and every response security headers."""

from __future__ import annotations

import logging
import re
import secrets

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ferret_api.http.errors import problem
from ferret_api.http.security_headers import with_security_headers
from ferret_api.settings import ApiSettings
from ferret_core.protocol.errors import FerretError
from ferret_runtime import log_setup

logger = logging.getLogger(__name__)

REQUEST_ID = "X-Request-ID"
_REQUEST_ID = REQUEST_ID.lower().encode()
_ACCEPTED_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")


class RequestScope:
    """The outermost middleware: sets the request id, adds security headers and handles uncaught exceptions."""

    def __init__(self, app: ASGIApp, settings: ApiSettings) -> None:
        self.app = app
        self.hsts_seconds = settings.hsts_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        request.state.request_id = request_id = _request_id(request)
        with log_setup.bound(request=request_id):
            await self._answer(request, request_id, receive, send)

    async def _answer(self, request: Request, request_id: str, receive: Receive, send: Send) -> None:
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = [*message.get("headers", ()), (_REQUEST_ID, request_id.encode())]
                message["headers"] = with_security_headers(headers, request, self.hsts_seconds)
            await send(message)

        try:
            await self.app(request.scope, receive, send_with_headers)
        except Exception:
            logger.exception("%s %s failed", request.method, request.url.path)
            if started:
                raise  # the response has begun: only a broken connection can signal the failure
            error = FerretError("internal", f"the server's log has details under the request id {request_id}")
            await problem(request, error)(request.scope, receive, send_with_headers)


def _request_id(request: Request) -> str:
    given = request.headers.get(REQUEST_ID, "")
    return given if _ACCEPTED_ID.fullmatch(given) else secrets.token_hex(8)
