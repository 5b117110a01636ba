"""Passwords as Argon2id hashes (RFC 9106, the parameters for little memory: 64 MiB, three passes)."""

from __future__ import annotations

import threading
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

AT_ONCE = 2
"""Each takes 64 MiB and a processor: many sign-ins at once wait for each other."""

_hasher = PasswordHasher()
_places = threading.BoundedSemaphore(AT_ONCE)


def hashed(password: str) -> str:
    """What is kept of the password."""
    with _places:
        return _hasher.hash(password)


def is_right(password: str, kept: str | None) -> bool:
    """Whether it is the one that was hashed. Takes as long where there is none, so that nobody learns who has one."""
    with _places:
        try:
            return _hasher.verify(kept or _nobodys(), password) and kept is not None
        except (VerificationError, InvalidHashError):
            return False


@cache
def _nobodys() -> str:
    """Made when it is first needed: a service in which nobody signs in needs no memory for it."""
    return _hasher.hash("nobody")
