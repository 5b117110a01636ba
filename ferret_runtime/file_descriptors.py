"""Open files: each connection, database handle and stored file of a process takes one descriptor."""

from __future__ import annotations

import resource

MOST = 1 << 20
"""More are never asked for: containers may allow a billion, and some libraries keep a table of them."""


def limit() -> int:
    """How many files this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else soft


def raise_limit() -> None:
    """Raises the limit of this process and of those it will start to what the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if limit() < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
