"""A message as a signed POST, after https://www.standardwebhooks.com (version 1 of its signatures)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import secrets
import ssl
import time

import httpcore2

from ferret_api.alerts.addresses import Allowed, GuardedNetwork
from ferret_core import __version__
from ferret_core.protocol.errors import FerretError

SECONDS = 10.0
"""For the whole exchange, however slowly the other side answers."""
PREFIX = "whsec_"


def new_secret() -> str:
    """A key of 256 random bits, as the specification writes it."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """The value of ``webhook-signature``."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    mac = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(mac).decode()


async def post(url: str, secret: str, id: str, body: bytes, allowed: Allowed) -> int:
    """The status of the answer, whose body is not read; redirections are not followed.

    Raises ``request.invalid`` for a private address, ``OSError``, ``TimeoutError`` and httpcore's errors.
    """
    timestamp = int(time.time())
    headers: dict[str | bytes, str | bytes] = {
        "Content-Type": "application/json",
        "User-Agent": f"Ferret/{__version__}",
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(secret, id, timestamp, body),
    }
    pool = httpcore2.AsyncConnectionPool(ssl.create_default_context(), network_backend=GuardedNetwork(allowed))
    async with asyncio.timeout(SECONDS), pool, pool.stream("POST", url, headers=headers, content=body) as answer:
        return answer.status


def why(error: Exception) -> str:
    """What kept a message from being delivered, for people."""
    match error:
        case FerretError():
            return error.detail
        case TimeoutError():
            return f"no answer within {SECONDS:.0f} s"
        case _:
            return f"{type(error).__name__}: {error}".rstrip(": ")
