"""``ferret api``"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer


def api(
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on; default FERRET_HOST.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on; default FERRET_PORT.")] = None,
) -> None:
    """Run the API alone, as one process of a larger installation."""
    from ferret_cli.setup import require_server

    require_server()
    for name, value in (("FERRET_HOST", host), ("FERRET_PORT", port)):
        if value is not None:
            os.environ[name] = str(value)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "ferret_api"])  # noqa: S606 - our own words, no shell
