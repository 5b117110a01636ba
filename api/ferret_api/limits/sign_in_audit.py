"""Which failed sign-ins the audit log tells of: a million attempts must not make a million entries."""

from __future__ import annotations

import threading
import time

from ferret_api.client_network import network

PAUSE_SECONDS = 60.0
"""Between two entries about one address."""
MOST = 60
"""Entries about all addresses within that time."""


class FailedSignIns:
    """Counts those without an entry; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, float] = {}  # in order of time
        self._unlisted = 0

    def count(self, address: str | None) -> int | None:
        """How many had no entry since the last one, if this one gets an entry; None if it gets none."""
        place, now = network(address or ""), time.monotonic()
        with self._lock:
            self._told = {each: at for each, at in self._told.items() if now - at < PAUSE_SECONDS}
            if place in self._told or len(self._told) >= MOST:
                self._unlisted += 1
                return None
            self._told[place] = now
            unlisted, self._unlisted = self._unlisted, 0
            return unlisted
