"""A TCP relay between one site and the server that counts every byte it passes on."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import NamedTuple, Self

CHUNK = 1 << 16


class Bytes(NamedTuple):
    """Passed on so far: ``up`` from the site to the server, ``down`` from the server to the site."""

    up: int = 0
    down: int = 0

    def since(self, before: Bytes) -> Bytes:
        return Bytes(self.up - before.up, self.down - before.down)


class Relay:
    """Listens on ``host`` and passes everything on to ``target``, for the length of a ``with`` block.

    It counts TCP payload: TLS records and HTTP headers count, the headers of IP and TCP do not.
    """

    def __init__(self, host: str, target: tuple[str, int]) -> None:
        self._target = target
        self._listener = socket.create_server((host, 0))
        self._lock = threading.Lock()
        self._held = set[socket.socket]()
        self._bytes = Bytes()
        self._ended = False

    @property
    def port(self) -> int:
        return self._listener.getsockname()[1]

    @property
    def bytes(self) -> Bytes:
        with self._lock:
            return self._bytes

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *ended: object) -> None:
        """Ends every connection, and thereby the threads that serve them."""
        with self._lock:
            self._ended = True
        self.cut()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def cut(self) -> None:
        """Ends the current connections."""
        with self._lock:
            held = [*self._held]
        for connection in held:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                site, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(site,), daemon=True).start()

    def _serve(self, site: socket.socket) -> None:
        with site, suppress(OSError), socket.create_connection(self._target) as server:
            if not self._hold(site, server):
                return
            answering = threading.Thread(target=self._pass_on, args=(server, site, False), daemon=True)
            answering.start()
            self._pass_on(site, server, True)
            answering.join()
        with self._lock:
            self._held -= {site}

    def _hold(self, site: socket.socket, server: socket.socket) -> bool:
        with self._lock:
            self._held |= {site, server}
            return not self._ended

    def _pass_on(self, source: socket.socket, sink: socket.socket, up: bool) -> None:
        """Passes bytes on until the source has ended, and then closes the sink."""
        with suppress(OSError):
            while chunk := source.recv(CHUNK):
                self._count(len(chunk), up)
                sink.sendall(chunk)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def _count(self, count: int, up: bool) -> None:
        with self._lock:
            sent, received = self._bytes
            self._bytes = Bytes(sent + count, received) if up else Bytes(sent, received + count)
