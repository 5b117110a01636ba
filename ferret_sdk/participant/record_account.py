"""A site's account of an experiment that protects its records by noise: ε spent, and the limit.

The limit is what the experiment promised when the site first took part; later changes at the server do not raise it.
A release is on disk as spent before the first unit is drawn, so a failure or a killed process costs as much as a
contribution, and no kill can make the site pass its limit. A contribution that is sent again has the same bytes and
costs nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from ferret_core.privacy.accounting import RecordSpending
from ferret_core.privacy.mechanism import RecordMechanism
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, StrictModel
from ferret_core.system.atomic_files import write_durably
from ferret_sdk.http.safe_paths import resolve_inside
from ferret_sdk.participant.lock import in_turn
from ferret_sdk.participant.paths import participants_folder, read_stored


class RecordTotals(NamedTuple):
    """ε of all releases so far, its limit, and δ."""

    epsilon: float
    limit: float
    delta: float


class _Stored(StrictModel):
    """The limit, None before the first release; and the releases."""

    limit: float | None = Field(default=None, gt=0)
    delta: float | None = Field(default=None, gt=0, lt=1)
    unit: str | None = None
    mechanism: str | None = None
    spending: RecordSpending = RecordSpending()


class RecordAccount:
    """The account of ``experiment`` in ``home``; safe to use from several processes."""

    def __init__(self, home: Path, experiment: str) -> None:
        self._path = resolve_inside(home, _folder(home) / f"{experiment}.json")

    def totals(self) -> RecordTotals | None:
        """Returns the account; None before the first release."""
        stored = self._read()
        if stored.limit is None or stored.delta is None:
            return None
        return RecordTotals(stored.spending.epsilon(stored.delta), stored.limit, stored.delta)

    def require(self, spec: ExperimentSpec, mechanism: RecordMechanism) -> None:
        """Raises ``privacy.spent`` unless one more release fits, and ``server.unexpected`` for another unit, δ or
        mechanism than before."""
        self._with_one(self._read(), spec, mechanism)

    def spend(self, spec: ExperimentSpec, mechanism: RecordMechanism) -> None:
        """Records one release durably, before a unit is drawn; raises as :meth:`require`."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with in_turn(self._path.with_suffix(".lock"), lambda: None):
            after = self._with_one(self._read(), spec, mechanism)
            write_durably(self._path, after.model_dump_json().encode())

    def _with_one(self, stored: _Stored, spec: ExperimentSpec, mechanism: RecordMechanism) -> _Stored:
        privacy, z = spec.privacy, mechanism.noise_multiplier
        assert privacy.epsilon is not None
        for name in ("unit", "delta", "mechanism"):
            before, now = getattr(stored, name), getattr(privacy, name)
            if before not in {None, now}:
                message = f"was {before} when this site began; nothing is trained"
                raise FerretError.of_field("server.unexpected", f"privacy.{name}", now, message)
        limit, after = stored.limit or privacy.epsilon, stored.spending.and_one(mechanism.rate, z)
        after.require(limit, privacy.delta)
        return _Stored(limit=limit, delta=privacy.delta, unit=privacy.unit, mechanism=privacy.mechanism, spending=after)

    def _read(self) -> _Stored:
        return read_stored(self._path, _Stored, "the privacy that its records have lost: restore it")


def accounts(home: Path) -> dict[str, RecordTotals]:
    """Returns the accounts of all experiments in which ``home`` has made a release, by experiment."""
    found = {path.stem: RecordAccount(home, path.stem).totals() for path in sorted(_folder(home).glob("*.json"))}
    return {experiment: totals for experiment, totals in found.items() if totals is not None}


def _folder(home: Path) -> Path:
    return participants_folder(home) / "records"
