"""Cache of model outlines, since the dashboard requests a plan with every change to a form."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ferret_core.models import architecture
from ferret_core.models.architecture import Architecture

MOST = 8

Stamp = tuple[tuple[str, int, int], ...]
"""Name, size and modification time of every file in a folder."""


def of(source: str, shape: str | None) -> Architecture:
    """Returns the outline of the model folder ``source``, or of a model of ``shape``.

    Raises ``model.invalid`` if ``source`` is not a model folder on this server, and ``request.invalid`` for an unknown
    shape.
    """
    return architecture.of_llama(shape) if shape else _of_folder(source, _stamp(Path(source).expanduser()))


@lru_cache(MOST)
def _of_folder(source: str, _stamp: Stamp) -> Architecture:
    return architecture.of_folder(source)


def _stamp(folder: Path) -> Stamp:
    try:
        found = [(path.name, path.stat()) for path in sorted(folder.iterdir())]
    except OSError:
        return ()  # reading the outline raises the error
    return tuple((name, status.st_size, status.st_mtime_ns) for name, status in found)
