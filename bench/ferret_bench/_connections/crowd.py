"""Connections that want to be in the way: idle, dripping, or following events without end."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress

from ferret_bench._connections.api import TOKEN, Api
from ferret_bench.measure.repeated import repeated
from ferret_db.repositories import events

EVENT_SECONDS = 0.5
DRIP_SECONDS = 1.0


@contextmanager
def following(api: Api, count: int) -> Generator[None]:
    """``count`` event streams of the experiment, to which something happens twice a second."""
    address = f"/api/v1/experiments/{api.experiment}/events/stream"
    head = f"GET {address} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    with _held(api.port, count) as streams:
        for stream in streams:
            stream.sendall(head)
        for stream in streams:
            if not stream.recv(1 << 12).startswith(b"HTTP/1.1 200"):
                raise RuntimeError("an event stream was refused")
        with repeated(lambda: _happen(api), EVENT_SECONDS):
            yield


@contextmanager
def dripping(port: int, count: int) -> Generator[None]:
    """``count`` connections that send a byte of a request every second; whoever is closed comes again."""
    with _held(port, count) as peers, repeated(lambda: _drip(port, peers), DRIP_SECONDS):
        yield


@contextmanager
def idle(api: Api, count: int) -> Generator[None]:
    """``count`` connections that say nothing."""
    with _held(api.port, count):
        yield


@contextmanager
def _held(port: int, count: int) -> Generator[list[socket.socket]]:
    with ExitStack() as held:
        peers = [_connected(port) for _ in range(count)]
        held.callback(lambda: [peer.close() for peer in peers])
        yield peers


def _connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def _happen(api: Api) -> None:
    with api.database.begin() as s:
        events.add(s, api.experiment, "contribution.accepted", round=1, data={"size": 1})


def _drip(port: int, peers: list[socket.socket]) -> None:
    for number, peer in enumerate(peers):
        try:
            peer.sendall(b"G")
        except OSError:
            peer.close()
            with suppress(OSError):
                peers[number] = _connected(port)
