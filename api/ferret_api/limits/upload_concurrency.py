"""How many uploads of one participant are received at the same time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from ferret_api.limits.errors import TooMany

AT_ONCE = 2
"""An upload, and the next try of one whose connection broke without the server having noticed."""
RETRY_SECONDS = 5


class UploadGate:
    """Counts the uploads that are being received. For the event loop alone."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def entered(self, participant: str) -> Generator[None]:
        """Counts one for the length of the block; ``request.too_many`` if there are :data:`AT_ONCE` already."""
        if self._open[participant] >= AT_ONCE:
            raise TooMany(f"{AT_ONCE} uploads of this participant are being received already", RETRY_SECONDS)
        self._open[participant] += 1
        try:
            yield
        finally:
            self._open[participant] -= 1
            if not self._open[participant]:
                del self._open[participant]
