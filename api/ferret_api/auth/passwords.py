"""Passwords as Argon2id hashes (RFC 9106, the parameters for little memory: 64 MiB, three passes).

Separate threads hash passwords, so sign-ins never take the threads of other requests.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from fastapi import Request

from ferret_api.limits.rate_limits import RateLimitExceeded
from ferret_core.protocol.errors import FerretError

AT_ONCE = 2
"""Number of threads. Each hash takes 64 MiB and one CPU core."""
WAITING = 8
"""Maximum number of requests that wait for a thread. More are refused immediately."""
RETRY_SECONDS = 5
NICENESS = 10
"""Niceness of the threads, which gives the event loop priority."""

T = TypeVar("T")
_hasher = PasswordHasher()


def hashed(password: str) -> str:
    """Returns the hash to store. Call it in :class:`PasswordThreads`."""
    return _hasher.hash(password)


def is_right(password: str, stored: str | None) -> bool:
    """Returns True if ``stored`` is the hash of the password. Call it in :class:`PasswordThreads`.

    Without a hash it takes the same time, so that timing does not reveal which accounts have a password.
    """
    try:
        return _hasher.verify(stored or _nobodys(), password) and stored is not None
    except (VerificationError, InvalidHashError):
        return False


class PasswordThreads:
    """Threads that hash and check passwords. Use it only on the event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, "ferret-password", _give_way)
        self._places = asyncio.Semaphore(AT_ONCE)
        self.open = 0

    async def run(self, work: Callable[[], T], request: Request) -> T:
        """Runs ``work`` in one of the threads and returns its result.

        Raises ``request.too_many`` while :data:`WAITING` others wait, and ``request.timeout``, without running
        ``work``, if the client has closed its connection.
        """
        if self.open >= AT_ONCE + WAITING:
            raise RateLimitExceeded("too many passwords are being checked", RETRY_SECONDS)
        self.open += 1
        try:
            async with self._places:
                if await request.is_disconnected():
                    raise FerretError("request.timeout", "the client closed the connection before its turn: try again")
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self.open -= 1

    def close(self) -> None:
        self._threads.shutdown()


def _give_way() -> None:
    """Lowers the priority of the thread and of Argon2's threads. Only Linux has priorities per thread."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


@cache
def _nobodys() -> str:
    """Returns the hash for accounts without one. Computed at the first use, which saves its memory until then."""
    return _hasher.hash("nobody")
