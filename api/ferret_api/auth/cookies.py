"""Cookies that scripts cannot read and other sites do not send.

Over https their names begin with ``__Host-``. Browsers accept such a cookie only from the exact host, with ``Secure``
and for all paths, so neither plain http nor another name of the same domain can set it
(draft-ietf-httpbis-rfc6265bis, section 4.1.3.2). Over plain http, on the loopback address, browsers refuse the prefix.
"""

from __future__ import annotations

from starlette.requests import HTTPConnection
from starlette.responses import Response

HOST = "__Host-"


def named(request: HTTPConnection, name: str) -> str:
    """Returns the cookie's name for this request, with the prefix over https."""
    return f"{HOST}{name}" if _is_secure(request) else name


def read(request: HTTPConnection, name: str) -> str | None:
    """Returns the cookie's value. Over https, ignores a cookie without the prefix."""
    return request.cookies.get(named(request, name))


def write(response: Response, request: HTTPConnection, name: str, value: str, seconds: int) -> None:
    """Sets the cookie, which expires after ``seconds``."""
    response.set_cookie(
        named(request, name), value, max_age=seconds, httponly=True, samesite="strict", secure=_is_secure(request)
    )


def delete(response: Response, request: HTTPConnection, name: str) -> None:
    """Deletes the cookie."""
    secure = _is_secure(request)
    response.delete_cookie(named(request, name), httponly=True, samesite="strict", secure=secure)


def _is_secure(request: HTTPConnection) -> bool:
    return request.url.scheme == "https"
