"""A finished run as it is stored: its specification, every round's measurements, and its machine."""

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
    """A run that has ended. ``error`` is its failure, None if it completed.

    ``key`` is the digest of ``spec`` with all defaults. ``via`` is the server's address, or ``simulate``; ``machine``
    is the command's machine, on which an embedded server trained.
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
        """True if it was a trial of a search, which does not count as a result."""
        return self.spec["evaluation"].get("split") == "validation"
