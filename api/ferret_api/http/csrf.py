"""Whether a browser's cookie may speak: only for pages of this service.

``SameSite`` ignores ports, so a page of another server on this host sends the cookie along; and browsers send
``Sec-Fetch-Site`` only over https and to localhost. Every browser sends ``Origin`` with what changes something
(https://fetch.spec.whatwg.org/#origin-header).
"""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request

SAFE = {"GET", "HEAD"}
_PORTS = {"http": 80, "https": 443}


def is_same_origin(request: Request, public_url: str | None) -> bool:
    """False for a request that changes something unless its headers say that it comes from this very origin.

    ``public_url`` is this origin too, where a proxy in front asks under another name.
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
    """Compares name and port; a proxy in front may speak https where we are asked by http."""
    sent = urlsplit(origin)
    port = _PORTS.get(sent.scheme)
    if port is None:
        return False
    return _with_port(sent.netloc, port) == _with_port(host, port)


def _with_port(netloc: str, port: int) -> str:
    named = ":" in netloc.rpartition("]")[2]
    return (netloc if named else f"{netloc}:{port}").lower()
