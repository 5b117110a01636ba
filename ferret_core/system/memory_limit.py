"""This process's memory on Linux: usage and limit."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

SHARE = 0.8
"""Default share of the machine's or the container's memory for one worker."""
USABLE = 0.9
"""Share of the machine's free memory that :func:`limited` lets this process take."""
_MEMINFO = Path("/proc/meminfo")
_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_STATM = Path("/proc/self/statm")


def machine_bytes() -> int:
    """Returns the memory of the machine, or of the container if that is smaller."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([whole, *(int(text) for text in map(_read, _CGROUP_LIMITS) if text.isdigit())])


def resident_bytes() -> int:
    """Returns resident bytes without mapped files, which the system drops under pressure; 0 if it reports none."""
    fields = _read(_STATM).split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def usable_bytes() -> int:
    """Returns the bytes that this process may hold: its limit, if lower, else what it has and ``USABLE`` of what is
    free."""
    free = re.search(r"^MemAvailable:\s+(\d+) kB", _read(_MEMINFO), re.MULTILINE)
    held = int((_read(_STATM).split() or ["0"] * 6)[5]) * os.sysconf("SC_PAGE_SIZE")
    most = machine_bytes() if free is None else min(machine_bytes(), held + int(USABLE * 1024 * int(free[1])))
    soft = resource.getrlimit(resource.RLIMIT_DATA)[0]
    return most if soft == resource.RLIM_INFINITY else min(most, soft)


@contextmanager
def limited() -> Generator[None]:
    """Limits this process within the block to :func:`usable_bytes`, as :func:`limit` does."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    limit(usable_bytes())
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def limit(most: int) -> None:
    """Limits this process to ``most`` bytes. A larger allocation fails as it does without memory.

    ``RLIMIT_DATA`` counts private writable memory. Mapped files and a GPU's addresses do not count.
    """
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
