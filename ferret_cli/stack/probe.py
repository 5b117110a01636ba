"""Liveness probes of children that never block, because the supervisor has one thread."""

from __future__ import annotations

import errno
import http.client
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from ferret_core.protocol.errors import FerretError
from ferret_sdk.http.certificates import pinned

EVERY_SECONDS = 1.0
ANSWER_SECONDS = 5.0
"""Seconds after which an unanswered probe is dropped and repeated."""
PING = b"PING\r\n"


class Probe(Protocol):
    """A liveness check of a child."""

    def __call__(self) -> bool:
        """Returns True if there was a sign of life since the last call."""
        ...

    def reset(self) -> None:
        """Forgets the process that has ended."""
        ...


class Answer:
    """Connects to a TCP port every second; any answer, a refusal too, is a sign of life."""

    def __init__(self, host: str, port: int, question: bytes) -> None:
        self._address = (host, port)
        self._question = question
        self._unsent = b""
        self._socket: socket.socket | None = None
        self._asked = float("-inf")

    def __call__(self) -> bool:
        now = time.monotonic()
        if self._socket is None:
            if now - self._asked >= EVERY_SECONDS:
                self._ask(now)
            return False
        try:
            answered = self._proceed(self._socket)
        except OSError:
            self.reset()
            return False
        if answered or now - self._asked > ANSWER_SECONDS:
            self.reset()
        return answered

    def reset(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _ask(self, now: float) -> None:
        self._asked, self._unsent = now, self._question
        self._socket = socket.socket(socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET)
        self._socket.setblocking(False)
        if self._socket.connect_ex(self._address) not in {0, errno.EINPROGRESS}:
            self.reset()

    def _proceed(self, asking: socket.socket) -> bool:
        """Sends pending data and reads an answer; raises OSError if nothing listens."""
        readable, writable, _ = select.select([asking], [asking] if self._unsent else [], [], 0)
        if writable:
            self._unsent = self._unsent[asking.send(self._unsent) :]
        return bool(readable and asking.recv(1))


class Touched:
    """A probe that watches a file's time; times are compared with each other, never with this process's clock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.reset()

    def __call__(self) -> bool:
        before = self._last
        self.reset()
        return self._last != before

    def reset(self) -> None:
        self._last = self._time()

    def _time(self) -> int | None:
        with suppress(FileNotFoundError):
            return self._path.stat().st_mtime_ns
        return None


START_SECONDS = 60.0
READY_STEP_SECONDS = 0.1


def wait_until_ready(host: str, port: int, meanwhile: Callable[[], None], certificate: Path | None = None) -> None:
    """Returns when ``/readyz`` answers 200. Between tries, calls ``meanwhile``, which may raise."""
    deadline = time.monotonic() + START_SECONDS
    answer = "no answer"
    while time.monotonic() < deadline:
        meanwhile()
        status, answer = _readyz(_connection(host, port, certificate))
        if status == 200:
            return
        time.sleep(READY_STEP_SECONDS)
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
