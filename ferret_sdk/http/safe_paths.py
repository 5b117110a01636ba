"""Paths built from names that a server sent, and the disk space for announced sizes.

File names are checked by their spelling. A path with all links resolved must be inside its folder.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ferret_core.protocol.errors import FerretError

DISK_MARGIN = 256 << 20
"""Bytes that a download leaves free."""

_CHECKPOINT_FILE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*\.(json|safetensors|txt|model|jinja|ferret)"
)
_LONGEST_NAME = 120


def resolve_inside(folder: Path, path: Path) -> Path:
    """Returns ``path`` with its links resolved. Raises ``server.unexpected`` if that is outside ``folder``."""
    resolved = path.resolve()
    if not resolved.is_relative_to(folder.resolve()):
        raise FerretError.of_field("server.unexpected", "path", str(path), f"leads out of {folder}: nothing is written")
    return resolved


def checkpoint_file(folder: Path, name: str) -> Path:
    """Returns the path of a checkpoint's file ``name`` in ``folder``. Raises as :func:`require_name` does."""
    require_name(name)
    return resolve_inside(folder, folder / name)


def require_name(name: str) -> None:
    """Raises ``server.unexpected`` for a name that cannot belong to a checkpoint.

    Such a name contains a folder, or has another type than weights, bases, JSON, vocabularies and templates. Programs
    and pickles are excluded.
    """
    if len(name) > _LONGEST_NAME or not _CHECKPOINT_FILE.fullmatch(name):
        message = "is not the name of a checkpoint's file; nothing is downloaded"
        raise FerretError.of_field("server.unexpected", "artifact.name", name[:_LONGEST_NAME], message)


def require_room(folder: Path, size: int) -> None:
    """Raises ``storage.full`` unless ``size`` bytes and a margin fit on the disk of the existing ``folder``."""
    free = shutil.disk_usage(folder).free
    if size > free - DISK_MARGIN:
        detail = (
            f"the server announces {size} bytes for {folder}, where {free} are free and {DISK_MARGIN} stay free; "
            "free some space, and check that this is the server you meant to join"
        )
        raise FerretError("storage.full", detail)
