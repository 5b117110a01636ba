"""What the broker holds at this moment, asked without Celery."""

from __future__ import annotations

from ferret_core.protocol.tasks import Queue
from ferret_db.broker.lengths import lengths


class Broker:
    """A connection of its own to the broker."""

    def __init__(self, url: str) -> None:
        self._lengths = lengths(url)

    def drained(self) -> frozenset[Queue]:
        """The queues without a message, one that a worker works on left out; ``OSError`` without an answer."""
        return frozenset(queue for queue, length in self._lengths.read().items() if not length)

    def close(self) -> None:
        self._lengths.close()
