"""A TCP line to a server that is cut, or that hangs: nothing is lost in it, and nothing comes through."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress

from ferret_bench._edge.relay import Relay


class Line(Relay):
    """From a free port to ``target``, by TLS where a ``context`` is given."""

    def __init__(self, target: tuple[str, int], context: ssl.SSLContext | None = None) -> None:
        super().__init__("127.0.0.1", target)
        self._context = context
        self._through = threading.Event()
        self._through.set()

    def hang(self) -> None:
        """Whoever connects is accepted, and waits."""
        self._through.clear()

    def resume(self) -> None:
        self._through.set()

    def __exit__(self, *ended: object) -> None:
        self.resume()
        super().__exit__(*ended)

    def _serve(self, site: socket.socket) -> None:
        self._through.wait()
        with suppress(OSError):
            super()._serve(self._context.wrap_socket(site, server_side=True) if self._context else site)

    def _count(self, count: int, up: bool) -> None:
        self._through.wait()
        super()._count(count, up)
