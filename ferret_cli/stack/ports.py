"""Ports: reservation before the start, and search for free ones."""

from __future__ import annotations

import errno
import socket
from collections.abc import Generator
from contextlib import contextmanager

from ferret_core.protocol.errors import FerretError

BACKLOG = 2048


@contextmanager
def listening(host: str, port: int) -> Generator[socket.socket]:
    """Yields a listening socket for the API to inherit; raises ``port.in_use`` if another process listens.

    Listening is the only reliable check: a free port may be taken before it is used.
    """
    with _opened(host) as listener:
        if not _listens(listener, host, port):
            choose = f"choose another port with --port {port + 1} or FERRET_PORT={port + 1}"
            raise FerretError.of_field(
                "port.in_use", "port", port, f"{host}:{port} is taken; stop the program that uses it, or {choose}"
            )
        yield listener


def is_free(host: str, port: int) -> bool:
    """Returns True if a server could listen; raises ``request.invalid`` if the address is not this machine's."""
    with _opened(host) as probe:
        return _listens(probe, host, port)


def free_port(host: str = "127.0.0.1") -> int:
    """Returns a free port."""
    with _opened(host) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def this_or_free(port: int) -> int:
    """Returns ``port``, or any other if that one is taken."""
    return port if is_free("127.0.0.1", port) else free_port()


def _opened(host: str) -> socket.socket:
    opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    # A port in TIME_WAIT is free, one with a listener is not.
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return opened


def _listens(opened: socket.socket, host: str, port: int) -> bool:
    try:
        opened.bind((host, port))
        opened.listen(BACKLOG)
    except OSError as error:
        if error.errno in {errno.EADDRINUSE, errno.EACCES}:
            return False
        raise FerretError.of_field(
            "request.invalid", "host", host, f"cannot be listened on: {error.strerror}"
        ) from error
    return True
