"""Limit of concurrent uploads per participant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from ferret_api.limits.errors import RateLimitExceeded

AT_ONCE = 2
"""Concurrent uploads of a participant: one, and a retry after a broken connection that the server has not noticed."""
RETRY_SECONDS = 5


class UploadGate:
    """Counter of the uploads in progress. Use it only on the event loop."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def entered(self, participant: str) -> Generator[None]:
        """Counts an upload for the duration of the block; raises ``request.too_many`` beyond :data:`AT_ONCE`."""
        if self._open[participant] >= AT_ONCE:
            raise RateLimitExceeded(f"{AT_ONCE} uploads of this participant are being received already", RETRY_SECONDS)
        self._open[participant] += 1
        try:
            yield
        finally:
            self._open[participant] -= 1
            if not self._open[participant]:
                del self._open[participant]
