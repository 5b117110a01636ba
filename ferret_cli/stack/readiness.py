"""Waits until the API reports that it and its dependencies are ready."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable
from pathlib import Path

from ferret_core.protocol.errors import FerretError
from ferret_sdk.http.certificates import pinned

START_SECONDS = 60.0
STEP_SECONDS = 0.1


def wait_until_ready(host: str, port: int, meanwhile: Callable[[], None], certificate: Path | None = None) -> None:
    """Returns when ``/readyz`` answers 200, over TLS with this ``certificate`` if it is given.

    Calls ``meanwhile`` between tries, which may raise.
    """
    deadline = time.monotonic() + START_SECONDS
    answer = "no answer"
    while time.monotonic() < deadline:
        meanwhile()
        status, answer = _readyz(_connection(host, port, certificate))
        if status == 200:
            return
        time.sleep(STEP_SECONDS)
    raise FerretError("server.not_ready", f"the API was not ready after {START_SECONDS:.0f} s: {answer}")


def _connection(host: str, port: int, certificate: Path | None) -> http.client.HTTPConnection:
    if certificate is None:
        return http.client.HTTPConnection(host, port, timeout=5)
    return http.client.HTTPSConnection(host, port, timeout=5, context=pinned(certificate))


def _readyz(connection: http.client.HTTPConnection) -> tuple[int, str]:
    try:
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        return response.status, response.read(2000).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error) or type(error).__name__
    finally:
        connection.close()
