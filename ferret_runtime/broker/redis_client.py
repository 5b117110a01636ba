"""A connection to Redis, separate from Celery's."""

from __future__ import annotations

from typing import Any

import redis

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
