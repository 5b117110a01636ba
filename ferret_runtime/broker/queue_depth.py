"""The number of waiting messages per queue, read from the broker without Celery."""

from __future__ import annotations

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ferret_core.protocol.task_names import Queue
from ferret_runtime.broker import redis_client


class Lengths:
    """Reads the lengths over a separate connection, made on first use. Celery stores each queue as a list.

    Thread-safe.
    """

    def __init__(self, url: str) -> None:
        self._client = redis_client.connect(url, retry=Retry(NoBackoff(), 1))

    def read(self) -> dict[Queue, int]:
        """Returns the messages per queue that no worker has.

        Raises ``ConnectionError`` if the broker does not answer within two seconds.
        """
        try:
            return {queue: int(self._client.llen(str(queue))) for queue in Queue}
        except redis.RedisError as error:
            raise ConnectionError(f"the broker does not answer: {error}") from error

    def close(self) -> None:
        self._client.close()
