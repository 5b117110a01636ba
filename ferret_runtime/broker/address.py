"""The broker's URL: the allowed forms, and their reading by the libraries."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

SCHEMES = frozenset({"redis", "rediss", "redis+socket"})
FORM = "redis://user:password@host:port/number"
PORT = 6379


def broker_url(url: str) -> str:
    """Returns the URL of a broker. If it is invalid, raises ``ValueError`` with a message without the password."""
    scheme = url.partition(":")[0]
    if scheme not in SCHEMES:
        raise ValueError(f"use {FORM}, not {scheme}:…")
    try:
        _ = urlsplit(url).port
    except ValueError as error:
        raise ValueError("has no valid host or port; in passwords write / as %2F, # as %23, ? as %3F") from error
    return url


def for_redis_client(url: str) -> str:
    """Converts the URL for Redis' client: Celery has a different form for sockets."""
    parts = urlsplit(url)
    if parts.scheme != "redis+socket":
        return url
    number = parse_qs(parts.query).get("virtual_host", ["0"])[0]
    login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return f"unix://{login}{parts.path}?db={number}"


def place(url: str) -> tuple[str, int]:
    """Returns the broker's host and port."""
    parts = urlsplit(url)
    return parts.hostname or "localhost", parts.port or PORT
