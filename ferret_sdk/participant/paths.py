"""The files of a participant of an experiment, below the participant's home. Ids are checked by their spelling."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import ExperimentId, ParticipantId
from ferret_sdk.http.safe_paths import resolve_inside

RECEIPTS = "-receipts"
"""Suffix of the folder with a participant's receipts."""

Stored = TypeVar("Stored", bound=BaseModel)
_EXPERIMENT = TypeAdapter[str](ExperimentId)
_PARTICIPANT = TypeAdapter[str](ParticipantId)


class ParticipantPaths:
    """The files of one participant of one experiment, all below ``home``.

    Raises ``server.unexpected`` for an id with a wrong spelling, and for a path that a link leads out of ``home``.
    """

    def __init__(self, home: Path, experiment: str, participant: str) -> None:
        experiment = _spelt(_EXPERIMENT, "experiment", experiment)
        participant = _spelt(_PARTICIPANT, "participant", participant)
        folder = participants_folder(home) / experiment
        self.membership = resolve_inside(home, folder / f"{participant}.json")
        self.memory = resolve_inside(home, folder / f"{participant}-memory")
        self.upload = resolve_inside(home, folder / f"{participant}-upload")
        self.ended = resolve_inside(home, folder / f"{participant}-ended.json")
        self.receipts = resolve_inside(home, folder / f"{participant}{RECEIPTS}")
        self.usage = resolve_inside(home, folder / f"{participant}-usage.json")
        self.agreed = resolve_inside(home, folder / f"{participant}-agreed.json")
        self.secure = resolve_inside(home, folder / f"{participant}-secure.json")
        self.base = resolve_inside(home, folder / "base")
        self.lock = resolve_inside(home, folder / f"{participant}.lock")
        """Held by the process that takes part. A second process on the same memory and spool would lose
        contributions.
        """


def participants_folder(home: Path) -> Path:
    """Returns the folder of all memberships under ``home``."""
    return home / "participants"


def read_stored(path: Path, kind: type[Stored], meaning: str) -> Stored:
    """Reads a file of a participant, a new ``kind`` if there is none. Raises ``terms.invalid`` for an unreadable one:
    the ``meaning`` would be lost.
    """
    if not path.exists():
        return kind()
    try:
        return kind.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise FerretError("terms.invalid", f"{path} cannot be read, and contains {meaning}") from error


def _spelt(kind: TypeAdapter[str], field: str, value: str) -> str:
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        message = "is not spelt as an id; is this the address of a Ferret server?"
        raise FerretError.of_field("server.unexpected", field, str(value)[:200], message) from error
