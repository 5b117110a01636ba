"""How an object store is reached, and what this machine keeps of it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class ObjectStore(NamedTuple):
    """What the storage's URL does not say; credentials come from where the library looks for them.

    ``cache`` is a folder of this machine with at most ``cache_bytes`` of what was read or written. Larger files than
    ``part_bytes`` are sent in parts of as many. A request that fails is sent up to ``attempts`` times, and has failed
    where nothing comes for ``timeout_seconds``.
    """

    cache: Path
    cache_bytes: int = 64 << 30
    endpoint: str | None = None
    region: str | None = None
    path_style: bool | None = None
    part_bytes: int = 16 << 20
    attempts: int = 5
    timeout_seconds: float = 20.0
