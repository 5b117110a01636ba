"""Headers that bind browsers, on every answer (https://owasp.org/www-project-secure-headers/)."""

from __future__ import annotations

from starlette.requests import Request

from ferret_api.http.trusted_hosts import is_own

Header = tuple[bytes, bytes]

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""Of the dashboard: it runs what this server sends, speaks with this server alone, and stands in no frame."""
ALWAYS = {
    # An answer of the API is no page: where somebody makes a browser show it as one, nothing in it works.
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Answers hold tokens, codes and what only some may see; static files say for themselves how long they are kept.
    "Cache-Control": "no-store",
}


_ALWAYS = [(name.lower().encode(), value.encode()) for name, value in ALWAYS.items()]


def with_security_headers(given: list[Header], request: Request, hsts_seconds: int) -> list[Header]:
    """The headers of the answer to ``request``, as ASGI has them, with those that it does not set itself."""
    names = {name for name, _ in given}
    wanted = [*_ALWAYS, *_transport_security(request, hsts_seconds)]
    return [*given, *(header for header in wanted if header[0] not in names)]


def _transport_security(request: Request, hsts_seconds: int) -> list[Header]:
    """HSTS (RFC 6797). It is for a name with all its ports, so never for this machine's own."""
    if request.scope["scheme"] != "https" or not hsts_seconds or is_own(request.url.hostname or ""):
        return []
    return [(b"strict-transport-security", f"max-age={hsts_seconds}".encode())]
