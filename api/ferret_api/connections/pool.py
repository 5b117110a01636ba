"""All connections of the process: whether one more may come, which one gives way to it, and which ones are too slow."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Protocol

from ferret_api.client_network import Networks, is_within, network
from ferret_api.sizing import Sizing

AT_ONCE = 64
"""Connections on their way in or out at one time; the others wait in the kernel's queue until the loop has turned."""


class Connection(Protocol):
    """What the register knows of a connection."""

    address: str

    @property
    def idle(self) -> bool:
        """Whether nobody works on a request of it."""
        ...

    def overdue(self, now: float) -> str | None:
        """Why it must be closed at ``now``, if it must."""
        ...

    def close(self, reason: str) -> None:
        """Closes it and drops what was not sent yet."""
        ...


class Connections:
    """Counts connections from their acceptance until their descriptor is free again. Used on the event loop alone.

    ``proxies`` may have all connections: those of everybody else come from them.
    """

    def __init__(self, sizing: Sizing, proxies: Networks = ()) -> None:
        self.sizing = sizing
        self._proxies = proxies
        self.closed: Counter[str] = Counter()
        """By the reason for which the server closed a connection, or refused it."""
        # Of few connections fewer, or the last to come would find none among them that is known to be idle.
        self._at_once = max(1, min(AT_ONCE, sizing.max_connections // 4, sizing.max_connections_per_address // 4))
        self._accepted = Counter[str]()
        self._open: dict[Connection, None] = {}  # whoever did nothing for the longest time comes first
        self._closing: set[Connection] = set()
        self._handshakes: dict[tuple[Any, ...], Connection] = {}

    @property
    def open(self) -> int:
        """Accepted and not yet gone."""
        return self._accepted.total()

    @property
    def busy(self) -> bool:
        """Whether so many are on their way in or out that the next must wait until the loop has turned."""
        return self.open - len(self._open) + len(self._closing) >= self._at_once

    def admit(self, host: str) -> bool:
        """Counts a connection from ``host``, in whose place an idle one is closed if need be; False if none is idle."""
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
        """An admitted connection of ``peer``, address and port, has a handshake to make before its protocol."""
        self._handshakes[peer] = handshake
        self._open[handshake] = None

    def broken_off(self, peer: tuple[Any, ...], handshake: Connection) -> None:
        """Its descriptor is free; it is lost unless a protocol has come in its place."""
        if self._handshakes.get(peer) is handshake:
            del self._handshakes[peer]
            self.lost(handshake)

    def made(self, connection: Connection, peer: tuple[Any, ...]) -> None:
        """An admitted connection of ``peer`` has its protocol."""
        if handshake := self._handshakes.pop(peer, None):
            del self._open[handshake]
            self._closing.discard(handshake)
        self._open[connection] = None

    def lost(self, connection: Connection) -> None:
        """Its descriptor is free."""
        self._open.pop(connection, None)
        self._closing.discard(connection)
        self._accepted[connection.address] -= 1
        if not self._accepted[connection.address]:
            del self._accepted[connection.address]

    def active(self, connection: Connection) -> None:
        """It has brought a request or was given an answer: of the idle ones it is the last to give way."""
        if self._open.pop(connection, self) is None:
            self._open[connection] = None

    def make_room(self) -> bool:
        """Closes the idle connection that did nothing for the longest time; False if none is idle."""
        return self._evict(None)

    def sweep(self) -> None:
        """Closes what takes too long; call it about once a second."""
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
