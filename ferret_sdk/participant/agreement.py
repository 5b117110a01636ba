"""Remembers what a participant agreed to when it began: the base model, and what its contributions may reveal.

A restart neither asks again nor takes another base model.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import Digest
from ferret_core.protocol.spec import Strict
from ferret_core.system.atomic_files import write_durably
from ferret_sdk.participant.exposure import Exposure


class Agreed(Strict):
    """``base`` is the digest of the base model with all its files; ``exposure`` is what people consented to."""

    base: Digest | None = None
    exposure: Exposure | None = None


class Agreement:
    """Keeps what was agreed to in the file ``path``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def require_base(self, digest: str | None) -> None:
        """Takes the first base model's digest. Raises ``server.unexpected`` for any other from then on."""
        agreed = self._read()
        if agreed.base is None:
            self._write(agreed.model_copy(update={"base": digest}))
        elif agreed.base != digest:
            message = f"is another base model than {agreed.base}, with which this participant began"
            raise FerretError.of_field("server.unexpected", "base_digest", digest, f"{message}; nothing is trained")

    def covers(self, exposure: Exposure) -> bool:
        """True if people consented to this exposure."""
        return self._read().exposure == exposure

    def consent(self, exposure: Exposure) -> None:
        """Notes that people consented to this exposure."""
        self._write(self._read().model_copy(update={"exposure": exposure}))

    def _read(self) -> Agreed:
        if not self._path.exists():
            return Agreed()
        try:
            return Agreed.model_validate_json(self._path.read_bytes())
        except ValidationError as error:
            detail = f"{self._path} cannot be read, and says which base model this participant began with: restore it"
            raise FerretError("terms.invalid", detail) from error

    def _write(self, agreed: Agreed) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_durably(self._path, agreed.model_dump_json().encode())
