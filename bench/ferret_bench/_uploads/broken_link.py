"""A link that breaks once, during the contribution, and then holds."""

from __future__ import annotations

import socket
from time import perf_counter
from typing import final

from ferret_bench._edge.relay import Relay


@final
class Link(Relay):
    """Ends all connections when ``after`` bytes have gone up. ``outage_seconds`` count from then until the next
    connection; None before it.
    """

    def __init__(self, target: tuple[str, int], after: int) -> None:
        super().__init__("127.0.0.1", target)
        self.outage_seconds: float | None = None
        self._after = after
        self._cut_at: float | None = None

    def _hold(self, site: socket.socket, server: socket.socket) -> bool:
        if self._cut_at is not None and self.outage_seconds is None:
            self.outage_seconds = perf_counter() - self._cut_at
        return super()._hold(site, server)

    def _count(self, count: int, up: bool) -> None:
        super()._count(count, up)
        if self._cut_at is None and self.bytes.up >= self._after:
            self._cut_at = perf_counter()
            self.cut()
