"""A finished run as it is kept: what was asked for, what every round measured, and where it ran."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


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


class Record(Frozen):
    """A run that has ended: ``error`` says why it failed, and is None where it completed.

    ``key`` is the digest of ``spec`` with every default filled in. ``via`` is the server's address, or ``simulate``;
    ``machine`` is where the command ran, which is where an embedded server trained.
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
    digest: str | None = None
    error: dict[str, Any] | None = None

    @property
    def on_validation(self) -> bool:
        """Whether it was a trial of a search, which no result is read from."""
        return self.spec["evaluation"].get("split") == "validation"
