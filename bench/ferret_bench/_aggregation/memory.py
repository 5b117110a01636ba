"""Memory of a process and its children, without the pages of files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path


def anonymous_bytes(children: Sequence[int]) -> int:
    """Returns the anonymous memory of this process and ``children``, by /proc's RssAnon."""
    return sum(_anonymous(pid) for pid in (os.getpid(), *children))


def _anonymous(pid: int) -> int:
    found = re.search(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])
