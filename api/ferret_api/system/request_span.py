"""ASGI middleware with a tracing span for every request, in the caller's trace if ``traceparent`` names one.

The span contains the method, the route template and the status, but no address, path, query, header or body.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ferret_api.system.prometheus import METHODS, OTHER
from ferret_runtime import tracing

PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
"""Paths that monitoring requests every few seconds."""
CARRIERS = frozenset({b"traceparent", b"tracestate"})


class RequestSpan:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not tracing.on() or scope["type"] != "http" or scope["path"] in PROBES:
            await self.app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else OTHER
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in CARRIERS}
        with tracing.received(headers), tracing.span(method, None, "server", **{"http.request.method": method}) as note:

            async def send_noted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    route, status = getattr(scope.get("route"), "path", OTHER), message["status"]
                    failed = {"error.type": str(status)} if status >= 500 else {}
                    note(**{"http.route": route, "http.response.status_code": status, **failed})
                await send(message)

            await self.app(scope, receive, send_noted)
