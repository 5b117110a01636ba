"""A finished run as it is stored in ``runs.jsonl``: its specification, every round's measurements, and its machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

FIRST_TRIAL_SEED = 1001
"""The first seed of a search's trials; the seeds of results begin at 1."""


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class RoundRecord(Frozen):
    """One round; round 0 is the base model. The byte counts are sums over the round's participants."""

    number: int
    metrics: dict[str, float] = {}
    bytes_up: int = 0
    bytes_down: int = 0
    participants: int = 0
    accepted: int = 0


class ExampleLoss(NamedTuple):
    """``nll``: Σ −log p in nats over an example's ``tokens`` response tokens."""

    nll: float
    tokens: int


class Record(Frozen):
    """A run that has ended. ``error`` is its failure, None if it completed.

    ``key`` is the digest of ``spec``, which has all defaults. ``via`` is the server's address, or ``simulate``;
    ``machine`` is the command's machine, on which an embedded server trained. ``example_losses`` are those on each
    evaluated example after the last round, if the study measures them.
    """

    key: str
    row: str
    dataset: str
    model: str
    seed: int
    via: str
    seconds: float
    machine: dict[str, Any]
    spec: dict[str, Any]
    rounds: list[RoundRecord] = []
    example_losses: list[ExampleLoss] = []
    digest: str | None = None
    error: dict[str, Any] | None = None

    @property
    def is_trial(self) -> bool:
        """True if it was a trial of a search, which does not count as a result."""
        return self.seed >= FIRST_TRIAL_SEED


FILE = "runs.jsonl"


class Store:
    """The runs in a folder. A truncated line counts as never written."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.runs: dict[str, list[Record]] = {}
        for line in self._lines():
            try:
                self._keep(Record.model_validate_json(line))
            except ValidationError:
                continue

    def last(self, key: str) -> Record | None:
        """Returns the latest record of the run with this key."""
        return self.runs[key][-1] if key in self.runs else None

    def attempts(self, key: str) -> int:
        return len(self.runs.get(key, []))

    def add(self, run: Record) -> None:
        """Appends ``run`` durably."""
        with self.path.open("a+b") as file:
            if file.tell() and _last_byte(self.path) != b"\n":
                file.write(b"\n")
            file.write(run.model_dump_json().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._keep(run)

    def _keep(self, run: Record) -> None:
        self.runs.setdefault(run.key, []).append(run)

    def _lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines() if self.path.exists() else []


def _last_byte(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1)
