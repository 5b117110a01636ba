"""Cookies that scripts cannot read and other sites do not send.

Over https their names begin with ``__Host-``: a browser takes such a cookie only from this very host, with ``Secure``
and for all paths, so that neither plain http nor a neighbouring name of the same domain can set one
(draft-ietf-httpbis-rfc6265bis, section 4.1.3.2). Over plain http, on the loopback address, browsers refuse the prefix.
"""

from __future__ import annotations

from starlette.requests import HTTPConnection
from starlette.responses import Response

HOST = "__Host-"


def named(request: HTTPConnection, name: str) -> str:
    """The cookie's name for this request: over https it has the prefix."""
    return f"{HOST}{name}" if _is_secure(request) else name


def read(request: HTTPConnection, name: str) -> str | None:
    """The value of the cookie; over https never that of a cookie without the prefix."""
    return request.cookies.get(named(request, name))


def write(response: Response, request: HTTPConnection, name: str, value: str, seconds: int) -> None:
    """Sets the cookie for so long."""
    response.set_cookie(
        named(request, name), value, max_age=seconds, httponly=True, samesite="strict", secure=_is_secure(request)
    )


def delete(response: Response, request: HTTPConnection, name: str) -> None:
    """Takes the cookie away."""
    secure = _is_secure(request)
    response.delete_cookie(named(request, name), httponly=True, samesite="strict", secure=secure)


def _is_secure(request: HTTPConnection) -> bool:
    return request.url.scheme == "https"
