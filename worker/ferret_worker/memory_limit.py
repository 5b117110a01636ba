"""How much memory this process has and may have."""

from __future__ import annotations

import os
import resource
from pathlib import Path

SHARE = 0.8
"""Of the machine's or the container's memory, for one worker, where no setting says otherwise."""
_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_STATM = Path("/proc/self/statm")


def machine_bytes() -> int:
    """The memory of the machine, or of the container if that has less."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([whole, *(int(text) for text in map(_read, _CGROUP_LIMITS) if text.isdigit())])


def resident_bytes() -> int:
    """What this process has in memory, without files that are mapped, which the system drops where it needs room; 0 on
    a system that does not say."""
    fields = _read(_STATM).split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def limit(most: int) -> None:
    """From here on an allocation that takes this process beyond ``most`` bytes fails, as it does without memory.

    ``RLIMIT_DATA`` counts what is private and writable, thus neither files that are mapped nor a GPU's addresses.
    """
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
