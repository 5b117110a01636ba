"""How many messages wait in each queue, asked of the broker without Celery."""

from __future__ import annotations

import threading
from typing import Any, Protocol

import amqp
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ferret_core.protocol.tasks import Queue
from ferret_db.broker import address, rabbitmq, redis_client


class Lengths(Protocol):
    """For any thread."""

    def read(self) -> dict[Queue, int]:
        """Messages that no worker has; ``ConnectionError`` where the broker does not answer within two seconds."""
        ...

    def close(self) -> None: ...


def lengths(url: str) -> Lengths:
    """A connection of its own, which is made when it is needed."""
    return RabbitLengths(url) if address.is_amqp(url) else RedisLengths(url)


class RedisLengths:
    """Celery keeps a queue as a list."""

    def __init__(self, url: str) -> None:
        self._client = redis_client.connect(url, retry=Retry(NoBackoff(), 1))

    def read(self) -> dict[Queue, int]:
        try:
            return {queue: int(self._client.llen(str(queue))) for queue in Queue}
        except redis.RedisError as error:
            raise ConnectionError(f"the broker does not answer: {error}") from error

    def close(self) -> None:
        self._client.close()


class RabbitLengths:
    """A passive declaration tells a queue's length."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Any = None
        self._lock = threading.Lock()

    def read(self) -> dict[Queue, int]:
        with self._lock:
            try:
                return self._read_again() if self._connection else self._read()
            except rabbitmq.ERRORS as error:
                self._drop()
                raise ConnectionError(f"the broker does not answer: {error}") from error

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                rabbitmq.close(self._connection)
                self._connection = None

    def _read_again(self) -> dict[Queue, int]:
        try:
            return self._read()
        except rabbitmq.ERRORS:  # RabbitMQ may have been restarted since
            self._drop()
            return self._read()

    def _read(self) -> dict[Queue, int]:
        if self._connection is None:
            self._connection = rabbitmq.connect(self._url)
        return {queue: self._length(queue) for queue in Queue}

    def _length(self, queue: Queue) -> int:
        channel = self._connection.channel()
        try:
            return channel.queue_declare(str(queue), passive=True).message_count
        except amqp.NotFound:  # nobody has sent or taken anything yet; RabbitMQ has closed the channel
            return 0
        finally:
            if channel.is_open:
                channel.close()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.collect()
