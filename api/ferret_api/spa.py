"""The dashboard: built files in ``ferret_api/static``, served wherever no route of the API matches."""

from __future__ import annotations

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from ferret_api.security_headers import PAGE_POLICY

STATIC = Path(__file__).with_name("static")
INDEX = "index.html"
ASSETS = "assets"
_MISSING = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Ferret</title>
<h1>Ferret is running, but its dashboard is not built</h1>
<p>Build it once with <code>make web</code> and restart. The API under <code>/api/v1</code> works without it.</p>
"""


def dashboard(directory: Path = STATIC) -> ASGIApp:
    """What answers where no route matches: the built dashboard, or a page that says how to build it."""
    return SinglePageApp(directory) if (directory / INDEX).is_file() else _not_built


class SinglePageApp:
    """Files as they are, and the index for the addresses that the dashboard itself routes."""

    def __init__(self, directory: Path) -> None:
        self.files = StaticFiles(directory=directory)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _path(scope)
        # Hashed names never change their content; everything else may with the next release.
        kept = path.partition("/")[0] == ASSETS
        # Client-side routes have no file extension, and are no assets.
        response = await self.files.get_response(path if kept or Path(path).suffix else INDEX, scope)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if kept else "no-cache"
        response.headers["Content-Security-Policy"] = PAGE_POLICY
        await response(scope, receive, send)


async def _not_built(scope: Scope, receive: Receive, send: Send) -> None:
    if _path(scope):
        raise HTTPException(404)
    await HTMLResponse(_MISSING)(scope, receive, send)


def _path(scope: Scope) -> str:
    """The path below the root; nothing below ``api`` is a page, whatever it is."""
    path: str = scope["path"].lstrip("/")
    if path.partition("/")[0] == "api" or "\x00" in path:
        raise HTTPException(404)
    return path
