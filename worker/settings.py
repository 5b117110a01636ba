"""The worker's settings: those of the service, and how this process trains."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ferret_db.repositories.workers import gone_after
from ferret_db.settings import ServiceSettings


class WorkerSettings(ServiceSettings):
    """Read from the environment with the prefix ``FERRET_``."""

    threads: int = Field(default=0, ge=0, description="CPU threads for torch; 0 leaves torch's own choice")
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="Where models live; auto: a GPU if any")
    reconcile_seconds: float = Field(default=5, gt=0, description="How often lost work is looked for")
    kept_models: int = Field(default=2, ge=1, description="Experiments whose model a worker keeps between tasks")
    task_strikes: int = Field(default=3, ge=1, description="Attempts at a task that may fail before it is dead")
    task_limit_seconds: int = Field(default=6 * 3600, gt=0, description="A message is redelivered after this long")

    @property
    def gone_seconds(self) -> float:
        """A worker that was not seen for so long is taken for dead."""
        return gone_after(self.lease_seconds)
