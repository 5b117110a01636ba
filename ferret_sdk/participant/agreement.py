"""A participant's stored agreement: the base model, and what its contributions may reveal.

After a restart the question is not repeated, and other base models are refused.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import Digest
from ferret_core.protocol.spec import StrictModel
from ferret_core.system.atomic_files import write_durably
from ferret_sdk.participant.exposure import Exposure


class Agreed(StrictModel):
    """An agreement. ``base`` is the digest of the base model with all its files; ``exposure`` is what people consented
    to.
    """

    base: Digest | None = None
    exposure: Exposure | None = None


class Agreement:
    """Stores the agreement in the file ``path``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def require_base(self, digest: str | None) -> None:
        """Stores the first base model's digest. Later raises ``server.unexpected`` for any other digest."""
        agreed = self._read()
        if agreed.base is None:
            self._write(agreed.model_copy(update={"base": digest}))
        elif agreed.base != digest:
            message = f"is another base model than {agreed.base}, with which this participant began"
            raise FerretError.of_field("server.unexpected", "base_digest", digest, f"{message}; nothing is trained")

    def covers(self, exposure: Exposure) -> bool:
        """Returns True if people consented to this exposure."""
        return self._read().exposure == exposure

    def consent(self, exposure: Exposure) -> None:
        """Stores that people consented to this exposure."""
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
