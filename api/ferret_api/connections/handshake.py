"""A connection until its TLS handshake is done: asyncio tells the protocol nothing of one that never is."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from typing import Any

from ferret_api.client_network import network
from ferret_api.connections.listener import Listener
from ferret_api.connections.pool import Connections

HANDSHAKE = "handshake_timeout"


class Handshake:
    """Nobody works on it, so it gives way to others; it has as long as headers have."""

    idle = True

    def __init__(self, accepted: socket.socket, address: str, seconds: float) -> None:
        self.address = address
        self._accepted = accepted
        self._deadline = time.monotonic() + seconds

    def overdue(self, now: float) -> str | None:
        return HANDSHAKE if now > self._deadline else None

    def close(self, reason: str) -> None:
        with suppress(OSError):  # it was closed by the client
            self._accepted.shutdown(socket.SHUT_RDWR)


class TlsListener(Listener):
    """Its connections are in the register from their acceptance on."""

    def admitted(self, accepted: socket.socket, address: tuple[Any, ...]) -> socket.socket:
        return _Socket(accepted, address, self._connections)

    def refuse(self, accepted: socket.socket) -> None:
        accepted.close()  # before the handshake no word would be understood
        self._say()


class _Socket(socket.socket):
    """Tells the register when it is closed before a protocol has it."""

    def __init__(self, accepted: socket.socket, peer: tuple[Any, ...], connections: Connections) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self._peer, self._connections = peer, connections
        self._handshake = Handshake(self, network(peer[0]), connections.sizing.header_seconds)
        connections.begun(peer, self._handshake)

    def close(self) -> None:
        super().close()
        self._connections.broken_off(self._peer, self._handshake)
