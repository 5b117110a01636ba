"""Headers that bind browsers, on every answer (https://owasp.org/www-project-secure-headers/)."""

from __future__ import annotations

from starlette.requests import Request

from ferret_api.hosts import is_own

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


def security_headers(request: Request, hsts_seconds: int) -> dict[str, str]:
    """Those of the answer to ``request``, where it does not set them itself."""
    return ALWAYS | _transport_security(request, hsts_seconds)


def _transport_security(request: Request, hsts_seconds: int) -> dict[str, str]:
    """HSTS (RFC 6797). It is for a name with all its ports, so never for this machine's own."""
    host = request.url.hostname or ""
    if request.url.scheme != "https" or not hsts_seconds or is_own(host):
        return {}
    return {"Strict-Transport-Security": f"max-age={hsts_seconds}"}
