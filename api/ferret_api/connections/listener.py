"""The listening socket, which applies the connection limits before the event loop gets a connection."""

from __future__ import annotations

import errno
import logging
import socket
import time
from contextlib import suppress
from typing import Any

from ferret_api.connections.pool import Connections
from ferret_api.connections.raw_response import refusal
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
    """Sets options that send small parts immediately and close connections to peers that are gone or stop reading.

    They are set on each connection, since connections older than the listening socket's options inherit nothing.
    """
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
