"""Host names that the service accepts.

Another site can point its own name at this machine (DNS rebinding). Its scripts could then call the service as its own
origin. They cannot change the name in the ``Host`` header, and IP addresses cannot be rebound.
"""

from __future__ import annotations

import re
import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ferret_api.http.errors import problem
from ferret_api.settings import ApiSettings
from ferret_core.protocol.errors import FerretError

ANY = "*"
EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104  # nosec B104
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]*)(?::\d{0,5})?")


class KnownHosts:
    """ASGI middleware that refuses requests for other host names with ``host.unknown``."""

    def __init__(self, app: ASGIApp, settings: ApiSettings) -> None:
        self.app = app
        self.names = names(settings)
        self.certificate = settings.certificate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = Headers(scope=scope).getlist("host")
            if len(given) > 1 or (given and not self._answers_to(given[0])):
                await problem(Request(scope), _unknown(", ".join(given)))(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _answers_to(self, host: str) -> bool:
        name = name_of(host)
        return ANY in self.names or name in self.names or is_own(name) or self._is_certified(name)

    def _is_certified(self, name: str) -> bool:
        return self.certificate is not None and self.certificate.covers(name)


def names(settings: ApiSettings) -> frozenset[str]:
    """Returns the host names that the settings allow, in lower case."""
    configured = [name.strip().lower() for name in settings.allowed_hosts.split(",") if name.strip()]
    public = urlsplit(settings.public_url or "").hostname
    return frozenset([*configured, settings.host.lower(), socket.gethostname().lower(), *([public] if public else [])])


def name_of(host: str) -> str:
    """Returns the name or address in a ``Host`` header, without the port; empty if the header is invalid."""
    match = _HOST.fullmatch(host.strip())
    return match[1].strip("[]").rstrip(".").lower() if match else ""


def address(settings: ApiSettings, request: Request) -> str:
    """Returns the service's URL for participants: the configured one, else the address it listens on.

    If the service listens on all interfaces and has no configured URL, this is the host name of its certificate, or
    else of the request, which is an accepted one.
    """
    if settings.public_url:
        return settings.public_url
    server = request.scope.get("server")
    port = server[1] if server and server[1] else settings.port
    if settings.host in EVERYWHERE:
        named = settings.certificate and settings.certificate.host
        return f"https://{named}:{port}" if named else str(request.base_url).rstrip("/")
    scheme = "https" if settings.certificate else "http"
    return f"{scheme}://{f'[{settings.host}]' if ':' in settings.host else settings.host}:{port}"


def is_own(name: str) -> bool:
    """Returns True for localhost names and IP addresses, which no other site can use as its name."""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


def _unknown(host: str) -> FerretError:
    reason = "set FERRET_PUBLIC_URL to the address that people use, or add the name to FERRET_ALLOWED_HOSTS"
    return FerretError.of_field("host.unknown", "Host", host, reason)
