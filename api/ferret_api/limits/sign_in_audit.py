"""Selection of failed sign-ins for the audit log, so that many attempts do not fill it."""

from __future__ import annotations

import threading
import time

from ferret_api.client_network import network

PAUSE_SECONDS = 60.0
"""Minimum time between two entries about one address."""
MOST = 60
"""Maximum number of entries about all addresses within that time."""


class FailedSignIns:
    """Counter of failed sign-ins without an entry. It is thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, float] = {}  # in order of time
        self._unlisted = 0

    def count(self, address: str | None) -> int | None:
        """Counts a failed sign-in.

        Returns the number of failures without an entry since the last one if this failure gets an entry, else None."""
        place, now = network(address or ""), time.monotonic()
        with self._lock:
            self._told = {each: at for each, at in self._told.items() if now - at < PAUSE_SECONDS}
            if place in self._told or len(self._told) >= MOST:
                self._unlisted += 1
                return None
            self._told[place] = now
            unlisted, self._unlisted = self._unlisted, 0
            return unlisted
