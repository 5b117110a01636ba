"""``ferret api``"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from ferret_cli import options


def api(
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on; default FERRET_HOST.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on; default FERRET_PORT.")] = None,
    tls_cert: options.TlsCert = None,
    tls_key: options.TlsKey = None,
) -> None:
    """Run the API alone, as one process of a larger installation."""
    from ferret_cli.requirements_check import require_server

    require_server()
    given = {"FERRET_HOST": host, "FERRET_PORT": port, "FERRET_TLS_CERT": tls_cert, "FERRET_TLS_KEY": tls_key}
    for name, value in given.items():
        if value is not None:
            os.environ[name] = str(value)
    os.execv(sys.executable, [sys.executable, "-P", "-m", "ferret_api"])  # noqa: S606 - our own words, no shell
