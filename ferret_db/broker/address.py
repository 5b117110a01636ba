"""The URLs of brokers and of Redis: which are allowed, and how the libraries read them."""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

REDIS = frozenset({"redis", "rediss", "redis+socket"})
AMQP = frozenset({"amqp", "amqps"})
REDIS_FORM = "redis://user:password@host:port/number"
AMQP_FORM = "amqp://user:password@host:port/vhost"
_AMQP_PORTS = {"amqp": 5672, "amqps": 5671}


def is_amqp(url: str) -> bool:
    return _scheme(url) in AMQP


def broker_url(url: str) -> str:
    """The URL, if it can be a broker's; ``ValueError`` says what is wrong in words that hold no password."""
    if is_amqp(url):
        _check_amqp(_split(url))
    elif _scheme(url) in REDIS:
        _split(url)
    else:
        raise ValueError(f"use {REDIS_FORM} or {AMQP_FORM}, not {_scheme(url)}:…")
    return url


def redis_url(url: str | None) -> str | None:
    """The URL, if it can be a Redis'; ``ValueError`` as :func:`broker_url`."""
    if url is None:
        return None
    if _scheme(url) not in REDIS:
        raise ValueError(f"use {REDIS_FORM}, not {_scheme(url)}:…")
    _split(url)
    return url


def redis_of(url: str | None) -> str | None:
    """The URL, if Redis is what it names."""
    return url if url is not None and _scheme(url) in REDIS else None


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
    return parts.hostname or "localhost", parts.port or _AMQP_PORTS.get(parts.scheme, 6379)


def vhost(url: str) -> str:
    """RabbitMQ's virtual host, ``/`` where the URL names none."""
    return unquote(urlsplit(url).path[1:]) or "/"


def user(url: str) -> str:
    return unquote(urlsplit(url).username or "guest")


def _scheme(url: str) -> str:
    return url.partition(":")[0]


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ValueError("its host or port is none; in passwords write / as %2F, # as %23, ? as %3F") from error
    return parts


def _check_amqp(parts: SplitResult) -> None:
    if not parts.hostname:
        raise ValueError(f"names no host: use {AMQP_FORM}")
    if ";" in parts.path or parts.query or parts.fragment:
        raise ValueError(f"holds more than one address: use {AMQP_FORM}, with nothing behind it")
