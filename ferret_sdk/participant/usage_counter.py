"""A participant's usage of its site's limits, stored durably so that a restart does not reset it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from pydantic import Field

from ferret_core.protocol.spec import StrictModel
from ferret_core.system.atomic_files import write_durably
from ferret_sdk.participant import site_terms
from ferret_sdk.participant.paths import read_stored


class UsageTotals(StrictModel):
    """Usage of one membership: seconds of training in total and on ``day``, bytes of sent contributions."""

    seconds: float = Field(default=0.0, ge=0)
    day: date = date.min
    seconds_today: float = Field(default=0.0, ge=0)
    bytes: int = Field(default=0, ge=0)


class Usage:
    """Stores the usage in the file ``path``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> UsageTotals:
        """Returns the usage so far. Raises ``terms.invalid`` for an unreadable file, which would reset the limits."""
        return read_stored(self._path, UsageTotals, "the used part of the site's limits: restore or delete it")

    def today(self) -> float:
        """Returns the seconds of training on this machine's current day."""
        spent = self.read()
        return spent.seconds_today if spent.day == site_terms.local_now().date() else 0.0

    def trained(self, seconds: float) -> None:
        """Adds ``seconds`` of training to this day and to the total."""
        spent = self.read()
        update = {
            "seconds": spent.seconds + seconds,
            "day": site_terms.local_now().date(),
            "seconds_today": self.today() + seconds,
        }
        self._write(spent.model_copy(update=update))

    def sent(self, count: int) -> None:
        """Adds ``count`` bytes, before they are sent."""
        spent = self.read()
        self._write(spent.model_copy(update={"bytes": spent.bytes + count}))

    def _write(self, spent: UsageTotals) -> None:
        write_durably(self._path, spent.model_dump_json().encode())
