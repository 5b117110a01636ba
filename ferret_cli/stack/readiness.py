"""Waits until the API says that it and everything it stands on can work."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable

from ferret_core.protocol.errors import FerretError

START_SECONDS = 60.0
STEP_SECONDS = 0.1


def wait_until_ready(host: str, port: int, meanwhile: Callable[[], None]) -> None:
    """Returns when ``/readyz`` answers 200; calls ``meanwhile`` between tries, which may raise."""
    deadline = time.monotonic() + START_SECONDS
    answer = "no answer"
    while time.monotonic() < deadline:
        meanwhile()
        status, answer = _readyz(host, port)
        if status == 200:
            return
        time.sleep(STEP_SECONDS)
    raise FerretError("server.not_ready", f"the API was not ready after {START_SECONDS:.0f} s: {answer}")


def _readyz(host: str, port: int) -> tuple[int, str]:
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        return response.status, response.read(2000).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error) or type(error).__name__
    finally:
        connection.close()
