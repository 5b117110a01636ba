"""Settings of the search in ``[tune]``, in addition to the dimensions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from ferret_core.protocol.metrics import METRICS, names_of
from ferret_core.protocol.spec import Seed, StrictModel

FIRST_SEED = 1001
"""First seed of trials; reported runs usually count from 0 or 1."""
USUAL_TRIALS = 20
MOST_TRIALS = 10_000


class Settings(StrictModel):
    """A search: its budget, its metric, its sampler and its pruner."""

    trials: int | None = Field(
        default=None,
        ge=1,
        le=MOST_TRIALS,
        description="Budget: trials that complete, are pruned or fail; 20 if unset, with grid all its points",
    )
    seeds: int = Field(
        default=1, ge=1, le=100, description="Runs of each trial, with seeds 1001, 1002, …; their mean is its value"
    )
    metric: str = Field(default="eval_loss", description="Metric to optimise, after the last round")
    sampler: Literal["tpe", "random", "grid"] = Field(
        default="tpe", description="tpe: learns from the trials so far; random; grid: every combination of points"
    )
    pruner: Literal["median", "halving", "hyperband", "none"] = Field(
        default="median",
        description="median: ends a trial if its best round so far is worse than the median of the "
        "completed trials; halving, hyperband: keep the better part of the trials at "
        "rounds 1, 3, 9, … times warmup_rounds",
    )
    startup_trials: int = Field(
        default=5, ge=1, le=MOST_TRIALS, description="Trials drawn at random, and completed before median prunes"
    )
    warmup_rounds: int = Field(default=1, ge=1, le=1_000_000, description="Rounds before a trial may be pruned")
    seed: Seed = Field(default=0, description="Seed of the sampler")

    @field_validator("metric")
    @classmethod
    def _is_evaluated(cls, metric: str) -> str:
        if metric not in (known := names_of("evaluation")):
            raise ValueError(f"is not measured by an evaluation: choose one of {', '.join(known)}")
        return metric

    @property
    def highest(self) -> bool:
        """True if a higher metric is better."""
        return METRICS[self.metric].better == "high"

    @property
    def seeds_of_trials(self) -> range:
        return range(FIRST_SEED, FIRST_SEED + self.seeds)
