"""A connection to Redis, beside Celery's."""

from __future__ import annotations

from typing import Any

import redis

from ferret_runtime.broker import address

TIMEOUT_SECONDS = 2.0


def connect(url: str, **options: Any) -> redis.Redis:
    """Made when it is first used; waits two seconds at most for each answer."""
    return redis.Redis.from_url(
        address.for_redis_client(url),
        protocol=2,
        socket_timeout=TIMEOUT_SECONDS,
        socket_connect_timeout=TIMEOUT_SECONDS,
        **options,
    )
