"""The worker's settings: the service's, and this process's training."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ferret_core.system import memory_limit
from ferret_db.repositories.workers import gone_after
from ferret_runtime.settings import ServiceSettings


class WorkerSettings(ServiceSettings):
    """Read from the environment with the prefix ``FERRET_``."""

    threads: int = Field(default=0, ge=0, description="CPU threads for torch; 0: torch's default")
    device: Literal["auto", "cpu", "cuda"] = Field(
        default="auto", description="Device of the models; auto: a GPU if there is one"
    )
    reconcile_seconds: float = Field(default=5, gt=0, description="Seconds between two searches for lost work")
    model_cache_size: int = Field(default=2, ge=1, description="Number of experiments with models in a worker's memory")
    weights_in: Literal["auto", "memory", "mapped"] = Field(
        default="auto",
        description="Storage of models on a worker with a processor: in memory, or mapped from files where possible; "
        "auto: mapped if an aggregation needs more than the memory that it may use",
    )
    aggregation_processes: int = Field(
        default=1, ge=1, le=64, description="Number of processes that move a mapped model together"
    )
    task_max_attempts: int = Field(default=3, ge=1, description="Failed attempts after which a task is given up")
    task_limit_seconds: int = Field(
        default=6 * 3600, gt=0, description="Maximum seconds of a task; a longer one is ended"
    )
    prepare_limit_seconds: int = Field(
        default=15 * 60,
        gt=0,
        description="Maximum seconds to prepare an experiment's model and data; a longer preparation fails",
    )
    task_memory_bytes: int = Field(
        default=0, ge=0, description="Memory that a worker may use; 0: 80 % of the machine's or the container's"
    )
    playground_models: int = Field(
        default=2, ge=1, description="Number of models that the playground's worker keeps in memory"
    )
    playground_idle_seconds: float = Field(
        default=300,
        gt=0,
        description="Seconds without a question after which the playground's worker frees its models' memory",
    )
    playground_seconds: int = Field(
        default=120, ge=1, description="Maximum seconds of one answer in the playground, without loading the model"
    )

    @property
    def memory_limit(self) -> int:
        """The limit in bytes."""
        return self.task_memory_bytes or int(memory_limit.SHARE * memory_limit.machine_bytes())

    @property
    def gone_seconds(self) -> float:
        """Seconds without a heartbeat after which a worker is considered dead."""
        return gone_after(self.lease_seconds)
