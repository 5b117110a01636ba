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

from ferret_api.limits.errors import TooMany
from ferret_core.protocol.errors import FerretError

AT_ONCE = 2
"""Each hash takes 64 MiB and a processor."""
WAITING = 8
"""Requests that wait for a thread at most; more are refused at once."""
RETRY_SECONDS = 5
NICENESS = 10
"""Lowers the priority of the threads below that of the event loop."""

T = TypeVar("T")
_hasher = PasswordHasher()


def hashed(password: str) -> str:
    """The hash to store. Call it in :class:`PasswordThreads`."""
    return _hasher.hash(password)


def is_right(password: str, stored: str | None) -> bool:
    """True if ``stored`` is the hash of the password. Call it in :class:`PasswordThreads`.

    It takes as long for an account without a hash: the time does not show which accounts have a password.
    """
    try:
        return _hasher.verify(stored or _nobodys(), password) and stored is not None
    except (VerificationError, InvalidHashError):
        return False


class PasswordThreads:
    """Where passwords are hashed and checked. For the event loop alone."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, "ferret-password", _give_way)
        self._places = asyncio.Semaphore(AT_ONCE)
        self.open = 0

    async def run(self, work: Callable[[], T], request: Request) -> T:
        """What ``work`` gives, in one of the threads.

        Raises ``request.too_many`` while :data:`WAITING` others wait, and ``request.timeout`` without beginning once
        the client has closed its connection.
        """
        if self.open >= AT_ONCE + WAITING:
            raise TooMany("too many passwords are being checked", RETRY_SECONDS)
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
    """Lowers the thread's priority, and that of the threads that Argon2 begins. Only Linux has one for each thread."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


@cache
def _nobodys() -> str:
    """Made at its first use: a service in which nobody signs in needs no memory for it."""
    return _hasher.hash("nobody")
