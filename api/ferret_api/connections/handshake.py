"""Connections during the TLS handshake. asyncio does not notify the protocol of one that never completes."""

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
