"""Connection to an object store, and limits of its local cache."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class ObjectStore(NamedTuple):
    """Options that are not in the storage's URL; credentials come from the library's standard sources.

    ``cache`` is a folder of this machine with at most ``cache_bytes`` of read or written data. Files larger than
    ``part_bytes`` are sent in parts of this size. A failing request is sent up to ``attempts`` times, and fails after
    ``timeout_seconds`` without data.
    """

    cache: Path
    cache_bytes: int = 64 << 30
    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None
    part_bytes: int = 16 << 20
    attempts: int = 5
    timeout_seconds: float = 20.0
