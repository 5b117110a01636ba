"""The listening socket, which applies the connection limits before the event loop gets a connection."""

from __future__ import annotations

import errno
import logging
import socket
import time
from contextlib import suppress
from typing import Any

from ferret_api.client_network import network
from ferret_api.connections.pool import Connections
from ferret_api.connections.protocol import refusal
from ferret_core.protocol.errors import FerretError

logger = logging.getLogger(__name__)

EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
SAY_SECONDS = 60.0
QUIET_SECONDS = 60
PROBES = 3


class Listener(socket.socket):
    """A listening socket that takes over the descriptor of another."""

    def __init__(self, listening: socket.socket, connections: Connections) -> None:
        super().__init__(listening.family, listening.type, listening.proto, listening.detach())
        self._connections = connections
        self._said = -SAY_SECONDS
        self._out_of_descriptors = False

    def accept(self) -> tuple[socket.socket, Any]:
        """Returns the next admitted connection; raises BlockingIOError if the event loop must run first.

        Without free descriptors it raises once, so that asyncio pauses for a second. Python 3.11 would otherwise retry
        ``backlog`` times, each with a traceback in the log.
        """
        if self._out_of_descriptors or self._connections.busy:
            self._out_of_descriptors = False
            raise BlockingIOError(errno.EAGAIN, "the event loop must run first")
        while True:
            try:
                accepted, address = super().accept()
            except OSError as error:
                if error.errno not in EXHAUSTED:
                    raise
                self._out_of_descriptors = not self._connections.make_room()
                if self._out_of_descriptors:
                    raise
                raise BlockingIOError(errno.EAGAIN, "a connection is being closed for this one") from error
            if self._connections.admit(address[0]):
                _set_options(accepted, self._connections.sizing.body_seconds)
                return self.admitted(accepted, address), address
            self.refuse(accepted)

    def admitted(self, accepted: socket.socket, address: tuple[Any, ...]) -> socket.socket:
        """Returns the socket for the event loop."""
        return accepted

    def refuse(self, accepted: socket.socket) -> None:
        """Refuses the connection with ``server.busy`` and closes it."""
        detail = "every connection that this server may hold is in use; try again"
        with accepted, suppress(OSError):
            accepted.setblocking(False)
            accepted.send(refusal(FerretError("server.busy", detail)))
        self._say()

    def _say(self) -> None:
        if time.monotonic() - self._said >= SAY_SECONDS:
            self._said = time.monotonic()
            logger.warning(
                "%d connections are open and none is idle; new ones are refused (logged once a minute)",
                self._connections.open,
            )


def _set_options(accepted: socket.socket, seconds: float) -> None:
    """Set on each connection: those older than the listening socket's options inherit none."""
    # asyncio sets it only on sockets with a protocol number. Without it, the second part of a response waits 40 ms
    # for the client to acknowledge the first.
    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in {
        "TCP_KEEPIDLE": QUIET_SECONDS,
        "TCP_KEEPINTVL": QUIET_SECONDS // PROBES,
        "TCP_KEEPCNT": PROBES,
        "TCP_USER_TIMEOUT": int(1000 * seconds),  # also limits a zero window (tcp(7))
    }.items():
        if option := getattr(socket, name, None):
            accepted.setsockopt(socket.IPPROTO_TCP, option, value)


HANDSHAKE = "handshake_timeout"


class Handshake:
    """A connection during its handshake. It can be evicted, and has the same timeout as headers."""

    idle = True

    def __init__(self, accepted: socket.socket, address: str, seconds: float) -> None:
        self.address = address
        self._accepted = accepted
        self._deadline = time.monotonic() + seconds

    def overdue(self, now: float) -> str | None:
        return HANDSHAKE if now > self._deadline else None

    def close(self, reason: str) -> None:
        with suppress(OSError):  # the client has closed it
            self._accepted.shutdown(socket.SHUT_RDWR)


class TlsListener(Listener):
    """A listener that registers connections when it accepts them."""

    def admitted(self, accepted: socket.socket, address: tuple[Any, ...]) -> socket.socket:
        return _Socket(accepted, address, self._connections)

    def refuse(self, accepted: socket.socket) -> None:
        accepted.close()  # without a handshake, the client could not read a response
        self._say()


class _Socket(socket.socket):
    """An accepted socket that unregisters its connection if it is closed before a protocol takes it over."""

    def __init__(self, accepted: socket.socket, peer: tuple[Any, ...], connections: Connections) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self._peer, self._connections = peer, connections
        self._handshake = Handshake(self, network(peer[0]), connections.sizing.header_seconds)
        connections.begun(peer, self._handshake)

    def close(self) -> None:
        super().close()
        self._connections.broken_off(self._peer, self._handshake)
