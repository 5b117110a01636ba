"""Static files of the dashboard and the ``/docs`` page, served from ``ferret_api/static`` if no route matches."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from pathlib import Path

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from ferret_api.http.security_headers import PAGE_POLICY

STATIC = Path(__file__).parents[1] / "static"
INDEX = "index.html"
ASSETS = "assets"
PAGES = {"docs": "docs.html"}
"""Paths with a separate page. The index handles every other path."""
COPIES = {"br": ".br", "gzip": ".gz"}
"""Content codings, smallest output first, and the suffixes of compressed copies (``web/scripts/compress.mjs``)."""
_MISSING = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Ferret</title>
<h1>Ferret is running, but its dashboard is not built</h1>
<p>Build it once with <code>make web</code> and restart. The API under <code>/api/v1</code> works without it.</p>
"""


def dashboard(directory: Path = STATIC) -> ASGIApp:
    """Returns the application for unmatched routes: the built dashboard, or a page that explains how to build it."""
    return SinglePageApp(directory) if (directory / INDEX).is_file() else _not_built


class SinglePageApp:
    """The dashboard's files, its separate pages, and the index for all paths that the dashboard routes itself."""

    def __init__(self, directory: Path) -> None:
        self.files = StaticFiles(directory=directory)
        # Listed once: the copies are made when the dashboard is built, and change only with a release.
        self.copies = frozenset(
            file.relative_to(directory).as_posix() for file in directory.rglob("*") if file.suffix in COPIES.values()
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _path(scope)
        # Files with a hash in their name never change. All others may change with a release.
        kept = path.partition("/")[0] == ASSETS
        # Client-side routes have no file extension and are not assets.
        file = path if kept or Path(path).suffix else PAGES.get(path, INDEX)
        response = await self._file(file, scope)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if kept else "no-cache"
        response.headers["Content-Security-Policy"] = PAGE_POLICY
        await response(scope, receive, send)

    async def _file(self, path: str, scope: Scope) -> Response:
        if path in self.copies:
            raise HTTPException(404)
        copies = {coding: path + suffix for coding, suffix in COPIES.items() if path + suffix in self.copies}
        if not copies:
            return await self.files.get_response(path, scope)
        readable = accepted(Headers(scope=scope).get("accept-encoding", ""), copies)
        coding = next(iter(readable), None)
        response = await self.files.get_response(copies[coding] if coding else path, scope)
        response.headers["Vary"] = "Accept-Encoding"
        if coding and response.status_code != HTTPStatus.NOT_MODIFIED:
            response.headers["Content-Encoding"] = coding
        return response


def accepted(header: str, codings: Iterable[str]) -> list[str]:
    """Returns the ``codings`` that an Accept-Encoding header accepts, in the order given (RFC 9110, section 12.5.3)."""
    weights = dict(_weighed(item) for item in header.split(","))
    return [coding for coding in codings if weights.get(coding, weights.get("*", 0.0)) > 0]


def _weighed(item: str) -> tuple[str, float]:
    """Parses a coding and its weight, e.g. ``gzip;q=0.5``. Weight 0, or an invalid one, forbids the coding."""
    coding, _, parameter = (part.strip().lower() for part in item.partition(";"))
    try:
        return coding, float(parameter.removeprefix("q=") or 1)
    except ValueError:
        return coding, 0.0


async def _not_built(scope: Scope, receive: Receive, send: Send) -> None:
    if _path(scope):
        raise HTTPException(404)
    await HTMLResponse(_MISSING)(scope, receive, send)


def _path(scope: Scope) -> str:
    """Returns the path without the leading slash; raises 404 for paths below ``api``."""
    path: str = scope["path"].lstrip("/")
    if path.partition("/")[0] == "api" or "\x00" in path:
        raise HTTPException(404)
    return path
