"""Security headers of every response (https://owasp.org/www-project-secure-headers/)."""

from __future__ import annotations

from starlette.requests import Request

from ferret_api.http.trusted_hosts import is_own

Header = tuple[bytes, bytes]

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Policy of the dashboard: scripts and connections only from and to this server, and no frames."""
ALWAYS = {
    # API responses are not pages: if a browser shows one, nothing in it runs.
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Responses hold tokens, codes and private data. Static files set their own Cache-Control.
    "Cache-Control": "no-store",
}


_ALWAYS = [(name.lower().encode(), value.encode()) for name, value in ALWAYS.items()]


def with_security_headers(given: list[Header], request: Request, hsts_seconds: int) -> list[Header]:
    """Returns the ASGI headers ``given`` for the response to ``request``, with the missing security headers."""
    names = {name for name, _ in given}
    wanted = [*_ALWAYS, *_transport_security(request, hsts_seconds)]
    return [*given, *(header for header in wanted if header[0] not in names)]


def _transport_security(request: Request, hsts_seconds: int) -> list[Header]:
    """Returns the HSTS header (RFC 6797). It covers all ports of a name, so this machine's own names get none."""
    if request.scope["scheme"] != "https" or not hsts_seconds or is_own(request.url.hostname or ""):
        return []
    return [(b"strict-transport-security", f"max-age={hsts_seconds}".encode())]
