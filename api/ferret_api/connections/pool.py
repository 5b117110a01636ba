"""Register of the process's connections, with admission, eviction and timeouts."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Protocol

from ferret_api.client_network import Networks, is_within, network
from ferret_api.sizing import Sizing

AT_ONCE = 64
"""Maximum number of connections being opened or closed. Others wait in the kernel's queue until the event loop runs."""


class Connection(Protocol):
    """A connection in the register."""

    address: str

    @property
    def idle(self) -> bool:
        """True if no request is in progress."""
        ...

    def overdue(self, now: float) -> str | None:
        """Returns the reason to close the connection at time ``now``, or None."""
        ...

    def close(self, reason: str) -> None:
        """Closes the connection and drops unsent data."""
        ...


class Connections:
    """Register of connections from acceptance until their descriptor is free. Use it only on the event loop.

    ``proxies`` may use all connections, since other clients connect through them.
    """

    def __init__(self, sizing: Sizing, proxies: Networks = ()) -> None:
        self.sizing = sizing
        self._proxies = proxies
        self.closed: Counter[str] = Counter()
        """Number of connections that the server closed or refused, by reason."""
        # With a small limit, some registered connections remain, so that an idle one can be evicted.
        self._at_once = max(1, min(AT_ONCE, sizing.max_connections // 4, sizing.max_connections_per_address // 4))
        self._accepted = Counter[str]()
        self._open: dict[Connection, None] = {}  # least recently active first
        self._closing: set[Connection] = set()
        self._handshakes: dict[tuple[Any, ...], Connection] = {}

    @property
    def open(self) -> int:
        """Number of accepted connections that still exist."""
        return self._accepted.total()

    @property
    def busy(self) -> bool:
        """True if too many connections are being opened or closed to accept another before the event loop runs."""
        return self.open - len(self._open) + len(self._closing) >= self._at_once

    def admit(self, host: str) -> bool:
        """Counts a connection from ``host``. At a limit, closes an idle one; returns False if none is idle."""
        address = network(host)
        if self._accepted[address] - self._leaving(address) >= self._most_of(host):
            admitted = self._evict(address)
        elif self.open - len(self._closing) >= self.sizing.max_connections:
            admitted = self._evict(None)
        else:
            admitted = True
        if admitted:
            self._accepted[address] += 1
        else:
            self.closed["refused"] += 1
        return admitted

    def begun(self, peer: tuple[Any, ...], handshake: Connection) -> None:
        """Registers the handshake of an admitted connection from ``peer`` (address and port)."""
        self._handshakes[peer] = handshake
        self._open[handshake] = None

    def broken_off(self, peer: tuple[Any, ...], handshake: Connection) -> None:
        """Removes a closed handshake, unless a protocol has replaced it."""
        if self._handshakes.get(peer) is handshake:
            del self._handshakes[peer]
            self.lost(handshake)

    def made(self, connection: Connection, peer: tuple[Any, ...]) -> None:
        """Registers the protocol of an admitted connection from ``peer``."""
        if handshake := self._handshakes.pop(peer, None):
            del self._open[handshake]
            self._closing.discard(handshake)
        self._open[connection] = None

    def lost(self, connection: Connection) -> None:
        """Removes a closed connection."""
        self._open.pop(connection, None)
        self._closing.discard(connection)
        self._accepted[connection.address] -= 1
        if not self._accepted[connection.address]:
            del self._accepted[connection.address]

    def active(self, connection: Connection) -> None:
        """Marks the connection as the most recently active, so that it is evicted last."""
        if self._open.pop(connection, self) is None:
            self._open[connection] = None

    def make_room(self) -> bool:
        """Closes the least recently active idle connection; returns False if none is idle."""
        return self._evict(None)

    def sweep(self) -> None:
        """Closes overdue connections. Call it about once a second."""
        now = time.monotonic()
        for connection in [*self._open]:
            if reason := connection.overdue(now):
                self._close(connection, reason)

    def _evict(self, address: str | None) -> bool:
        for connection in self._open:
            if address in {None, connection.address} and connection not in self._closing and connection.idle:
                self._close(connection, "evicted")
                return True
        return False

    def _close(self, connection: Connection, reason: str) -> None:
        if connection not in self._closing:
            self._closing.add(connection)
            self.closed[reason] += 1
        connection.close(reason)

    def _most_of(self, host: str) -> int:
        proxy = is_within(host, self._proxies)
        return self.sizing.max_connections if proxy else self.sizing.max_connections_per_address

    def _leaving(self, address: str) -> int:
        return sum(connection.address == address for connection in self._closing)
