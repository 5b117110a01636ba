"""This process's memory: usage and limit."""

from __future__ import annotations

import os
import resource
from pathlib import Path

SHARE = 0.8
"""Default share of the machine's or the container's memory for one worker."""
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
