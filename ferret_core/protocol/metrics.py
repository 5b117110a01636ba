"""The one catalog of metrics, ``metrics.json``, which the dashboard reads too; docs/metrics.md says what each is.

The unit decides how a value is written for people.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

Unit = Literal["nats per token", "percent", "count", "ratio", "s", "1/s", "B"]
Source = Literal["participant", "evaluation", "cost", "projection", "guard"]


class Metric(BaseModel):
    """``source``: reported by participants, measured by an evaluation, counted as the cost of a round, known of its
    projection, or measured on development sequences before it counted.

    A participant's figure outside ``lower`` … ``upper`` is no measurement, and is left out.
    ``better`` is None where no round can be better than another: what an algorithm sends is given by its options.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str
    unit: Unit
    source: Source
    better: Literal["high", "low"] | None
    lower: float | None = None
    upper: float | None = None

    def holds(self, value: float) -> bool:
        """Whether ``value`` is one that can be measured."""
        low, high = self.lower, self.upper
        return math.isfinite(value) and (low is None or low <= value) and (high is None or value <= high)

    def best(self, least: float, greatest: float) -> float | None:
        """Which of a metric's extremes is its best value, if either is."""
        return {"high": greatest, "low": least, None: None}[self.better]


METRICS = TypeAdapter(dict[str, Metric]).validate_json(Path(__file__).with_suffix(".json").read_bytes())


JUDGING = tuple(name for name, entry in METRICS.items() if entry.source == "evaluation" and entry.better)
"""Metrics by which rounds can be compared: what the service measures, where more or less of it is better."""


def metric(name: str) -> Metric | None:
    """The entry for ``name``, also where it is of one label (``rouge_l/cooking``); None for an algorithm's own."""
    return METRICS.get(name.partition("/")[0])


def names_of(source: Source) -> list[str]:
    """The metrics of one source, in the catalog's order."""
    return [name for name, entry in METRICS.items() if entry.source == source]
