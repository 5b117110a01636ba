"""Protection against cross-site requests: a session cookie is accepted only from pages of this service.

``SameSite`` ignores ports, so browsers also send the cookie for pages of other servers on this host. They send
``Sec-Fetch-Site`` only over https and to localhost. Every browser sends ``Origin`` with requests that change something
(https://fetch.spec.whatwg.org/#origin-header).
"""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request

SAFE = {"GET", "HEAD"}
_PORTS = {"http": 80, "https": 443}


def is_same_origin(request: Request, public_url: str | None) -> bool:
    """Returns True for safe methods, and for requests with headers that name this service as origin.

    ``public_url`` also counts as this origin, since a reverse proxy may use another host name.
    """
    if request.method in SAFE:
        return True
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if site not in {None, "same-origin", "none"}:
        return False
    if origin is None:
        return site is not None
    return origin == public_url or _is_host(origin, request.headers.get("host", ""))


def _is_host(origin: str, host: str) -> bool:
    """Compares host name and port, but not the scheme: a reverse proxy may end TLS."""
    sent = urlsplit(origin)
    port = _PORTS.get(sent.scheme)
    if port is None:
        return False
    return _with_port(sent.netloc, port) == _with_port(host, port)


def _with_port(netloc: str, port: int) -> str:
    named = ":" in netloc.rpartition("]")[2]
    return (netloc if named else f"{netloc}:{port}").lower()
