"""Connections to Redis, separate from Celery's, and the number of waiting messages in each queue."""

from __future__ import annotations

from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ferret_core.protocol.task_names import Queue
from ferret_runtime.broker import address

TIMEOUT_SECONDS = 2.0


def connect(url: str, **options: Any) -> redis.Redis:
    """Creates a client. It connects on first use and waits at most two seconds for each response."""
    return redis.Redis.from_url(
        address.for_redis_client(url),
        protocol=2,
        socket_timeout=TIMEOUT_SECONDS,
        socket_connect_timeout=TIMEOUT_SECONDS,
        **options,
    )


class Lengths:
    """Reads the lists that Celery stores queues as, over its own connection, made on first use. Thread-safe."""

    def __init__(self, url: str) -> None:
        self._client = connect(url, retry=Retry(NoBackoff(), 1))

    def read(self) -> dict[Queue, int]:
        """Returns the messages per queue that no worker has; raises ``ConnectionError`` after two seconds."""
        try:
            return {queue: int(self._client.llen(str(queue))) for queue in Queue}
        except redis.RedisError as error:
            raise ConnectionError(f"the broker does not answer: {error}") from error

    def close(self) -> None:
        self._client.close()
