"""What the broker holds at this moment, asked without Celery."""

from __future__ import annotations

import redis

from ferret_core.protocol.tasks import Queue

TIMEOUT_SECONDS = 2.0


def client(url: str) -> redis.Redis:
    """A connection to the Redis at ``url``, which waits two seconds at most."""
    address = url.replace("redis+socket://", "unix://", 1)  # as Kombu and redis-py name the same
    return redis.Redis.from_url(address, socket_timeout=TIMEOUT_SECONDS, socket_connect_timeout=TIMEOUT_SECONDS)


class Broker:
    """A connection of its own to the broker."""

    def __init__(self, url: str) -> None:
        self._client = client(url)

    def drained(self) -> frozenset[Queue]:
        """The queues without a message, one that a worker works on left out; ``OSError`` without an answer."""
        try:
            lengths = {queue: self._client.llen(str(queue)) for queue in Queue}
        except redis.RedisError as error:
            raise ConnectionError(f"the broker does not answer: {error}") from error
        return frozenset(queue for queue, length in lengths.items() if not length)

    def close(self) -> None:
        self._client.close()
