"""The limit of open files: each connection, database handle and stored file of a process takes one descriptor."""

from __future__ import annotations

import resource

MOST = 1 << 20
"""Maximum requested limit: containers may allow a billion, and some libraries allocate a table of that size."""


def limit() -> int:
    """Returns the number of files that this process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else soft


def raise_limit() -> None:
    """Raises the limit of this process and its children to the system's maximum."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if limit() < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
