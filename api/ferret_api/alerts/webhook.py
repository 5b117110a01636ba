"""Alert messages as signed POST requests, by https://www.standardwebhooks.com (signature version 1)."""

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
"""Timeout of the whole exchange."""
PREFIX = "whsec_"


def new_secret() -> str:
    """Returns a random 256-bit key in the format of the specification."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """Returns the value of the header ``webhook-signature``."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    mac = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(mac).decode()


async def post(url: str, secret: str, id: str, body: bytes, allowed: Allowed) -> int:
    """Posts the message and returns the response's status. Does not read the body or follow redirections.

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
    """Returns a readable reason why a message was not delivered."""
    match error:
        case FerretError():
            return error.detail
        case TimeoutError():
            return f"no answer within {SECONDS:.0f} s"
        case _:
            return f"{type(error).__name__}: {error}".rstrip(": ")
