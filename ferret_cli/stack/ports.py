"""Ports: which are free, asked before anything is started."""

from __future__ import annotations

import errno
import socket

from ferret_core.protocol.errors import FerretError


def require_free(host: str, port: int) -> None:
    """``port.in_use`` if something listens there already."""
    if not is_free(host, port):
        choose = (
            f"stop the program that uses it, or choose another port with --port {port + 1} or FERRET_PORT={port + 1}"
        )
        raise FerretError.of_field("port.in_use", "port", port, f"{host}:{port} is taken; {choose}")


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now; ``request.invalid`` if the address is not this machine's."""
    try:
        _bind(host, port)
    except OSError as error:
        if error.errno in {errno.EADDRINUSE, errno.EACCES}:
            return False
        raise FerretError.of_field(
            "request.invalid", "host", host, f"cannot be listened on: {error.strerror}"
        ) from error
    return True


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nothing listens on."""
    return _bind(host, 0)


def this_or_free(port: int) -> int:
    """``port``, or any other if that one is taken."""
    return port if is_free("127.0.0.1", port) else free_port()


def _bind(host: str, port: int) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # As the servers do: a port in TIME_WAIT is free, one with a listener is not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])
