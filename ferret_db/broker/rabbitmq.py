"""A short connection to RabbitMQ, beside Celery's: to ask it something, or to find out what is wrong."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import amqp

from ferret_db.broker import address

TIMEOUT_SECONDS = 2.0
ERRORS = (amqp.AMQPError, OSError)


@contextmanager
def connected(url: str) -> Generator[Any]:
    """A connection for the block; each answer may take two seconds. Raises one of :data:`ERRORS`."""
    connection = connect(url)
    try:
        yield connection
    finally:
        close(connection)


def connect(url: str) -> Any:
    """An open connection; raises one of :data:`ERRORS`."""
    host, port = address.place(url)
    # Without the host's name the certificate may be anybody's.
    tls: Any = {"server_hostname": host} if url.startswith("amqps:") else False
    connection = amqp.Connection(
        host=f"{host}:{port}",
        userid=address.user(url),
        password=unquote(urlsplit(url).password or "guest"),
        virtual_host=address.vhost(url),
        ssl=tls,
        connect_timeout=TIMEOUT_SECONDS,
        read_timeout=TIMEOUT_SECONDS,
        write_timeout=TIMEOUT_SECONDS,
    )
    try:
        connection.connect()
    except BaseException:
        connection.collect()
        raise
    return connection


def close(connection: Any) -> None:
    """Closes it in words if RabbitMQ listens, and else without."""
    try:
        connection.close()
    except ERRORS:
        connection.collect()


def version(connection: Any) -> tuple[int, ...]:
    """Of the server, ``(3, 12, 1)``; empty if it does not say."""
    numbers = str(connection.server_properties.get("version", "")).partition("-")[0].split(".")
    return tuple(int(number) for number in numbers if number.isdigit())
