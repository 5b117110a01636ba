"""The URL of the broker: which are allowed, and how the libraries read it."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

SCHEMES = frozenset({"redis", "rediss", "redis+socket"})
FORM = "redis://user:password@host:port/number"
PORT = 6379


def broker_url(url: str) -> str:
    """The URL, if it can be a broker's; ``ValueError`` says what is wrong in words that hold no password."""
    scheme = url.partition(":")[0]
    if scheme not in SCHEMES:
        raise ValueError(f"use {FORM}, not {scheme}:…")
    try:
        _ = urlsplit(url).port
    except ValueError as error:
        raise ValueError("has no valid host or port; in passwords write / as %2F, # as %23, ? as %3F") from error
    return url


def for_redis_client(url: str) -> str:
    """As Redis' own client reads it: for sockets Celery has a form of its own."""
    parts = urlsplit(url)
    if parts.scheme != "redis+socket":
        return url
    number = parse_qs(parts.query).get("virtual_host", ["0"])[0]
    login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return f"unix://{login}{parts.path}?db={number}"


def place(url: str) -> tuple[str, int]:
    """Host and port of a broker that listens on one."""
    parts = urlsplit(url)
    return parts.hostname or "localhost", parts.port or PORT
