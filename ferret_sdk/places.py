"""Where a participant keeps things: the one module that makes a path of what a server said.

Ids and file names are checked by their spelling, and the path, with every link resolved, must lie where it belongs.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import ExperimentId, ParticipantId

DISK_MARGIN = 256 << 20
"""Bytes that a download leaves free."""

RECEIPTS = "-receipts"
"""Ends the name of the folder with a participant's receipts."""

_EXPERIMENT = TypeAdapter[str](ExperimentId)
_PARTICIPANT = TypeAdapter[str](ParticipantId)
_CHECKPOINT_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*\.(json|safetensors|txt|model|jinja)")
_LONGEST_NAME = 120


class Places:
    """The files of one participant of one experiment, all below ``home``.

    Raises ``server.unexpected`` for an id that is not spelt as one, and for a place that a link leads out of ``home``.
    """

    def __init__(self, home: Path, experiment: str, participant: str) -> None:
        experiment = _spelt(_EXPERIMENT, "experiment", experiment)
        participant = _spelt(_PARTICIPANT, "participant", participant)
        folder = all_of(home) / experiment
        self.membership = inside(home, folder / f"{participant}.json")
        self.memory = inside(home, folder / f"{participant}-memory")
        self.upload = inside(home, folder / f"{participant}-upload")
        self.ended = inside(home, folder / f"{participant}-ended.json")
        self.receipts = inside(home, folder / f"{participant}{RECEIPTS}")
        self.usage = inside(home, folder / f"{participant}-usage.json")
        self.agreed = inside(home, folder / f"{participant}-agreed.json")
        self.base = inside(home, folder / "base")
        self.lock = inside(home, folder / f"{participant}.lock")
        """Held by the process that takes part; a second one on the same memory and spool would lose contributions."""


def all_of(home: Path) -> Path:
    """The folder of all that is kept of memberships under ``home``."""
    return home / "participants"


def inside(folder: Path, path: Path) -> Path:
    """``path`` with its links resolved; ``server.unexpected`` if it then lies outside ``folder``."""
    resolved = path.resolve()
    if not resolved.is_relative_to(folder.resolve()):
        raise FerretError.of_field("server.unexpected", "path", str(path), f"leads out of {folder}: nothing is written")
    return resolved


def checkpoint_file(folder: Path, name: str) -> Path:
    """Where the file ``name`` of a checkpoint lies in ``folder``; raises as :func:`require_name` does."""
    require_name(name)
    return inside(folder, folder / name)


def require_name(name: str) -> None:
    """Raises ``server.unexpected`` for a name that no checkpoint's file has: with a folder in it, or of another type
    than weights, JSON, vocabularies and templates. Programs and pickles are none of these."""
    if len(name) > _LONGEST_NAME or not _CHECKPOINT_FILE.fullmatch(name):
        message = "is not the name of a checkpoint's file; nothing is downloaded"
        raise FerretError.of_field("server.unexpected", "artifact.name", name[:_LONGEST_NAME], message)


def require_room(folder: Path, size: int) -> None:
    """Raises ``storage.full`` unless ``size`` bytes fit on the disk of the existing ``folder`` with a margin."""
    free = shutil.disk_usage(folder).free
    if size > free - DISK_MARGIN:
        detail = (
            f"the server announces {size} bytes for {folder}, where {free} are free and {DISK_MARGIN} stay free; "
            "free some space, and check that this is the server you meant to join"
        )
        raise FerretError("storage.full", detail)


def _spelt(kind: TypeAdapter[str], field: str, value: str) -> str:
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        message = "is not spelt as an id; is this the address of a Ferret server?"
        raise FerretError.of_field("server.unexpected", field, str(value)[:200], message) from error
