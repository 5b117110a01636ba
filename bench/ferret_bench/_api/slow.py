"""Slow connections that send a byte of a request per second."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress

from ferret_bench.measure.background import repeated

DRIP_SECONDS = 1.0


@contextmanager
def slow_connections(port: int, count: int) -> Generator[None]:
    """Opens ``count`` connections that send a byte of a request every second. A closed one is reopened."""
    with _held(port, count) as peers, repeated(lambda: _drip(port, peers), DRIP_SECONDS):
        yield


@contextmanager
def _held(port: int, count: int) -> Generator[list[socket.socket]]:
    with ExitStack() as held:
        peers = [_connected(port) for _ in range(count)]
        held.callback(lambda: [peer.close() for peer in peers])
        yield peers


def _connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def _drip(port: int, peers: list[socket.socket]) -> None:
    for number, peer in enumerate(peers):
        try:
            peer.sendall(b"G")
        except OSError:
            peer.close()
            with suppress(OSError):
                peers[number] = _connected(port)
