"""The catalog of metrics, ``metrics.json``, which the dashboard reads too.

docs/researchers/metrics.md explains each metric. The unit determines how a value is formatted for people.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

Unit = Literal["nats per token", "percent", "count", "ratio", "s", "1/s", "B"]
Source = Literal["participant", "evaluation", "cost", "projection", "sum", "guard", "privacy"]


class Metric(BaseModel):
    """A metric.

    ``source``: reported by participants, measured by an evaluation, a cost of the round, a property of its projection
    or of its secure sum, measured on development sequences before the round counts, or the loss of privacy up to the
    round.

    A participant's value outside ``lower`` … ``upper`` is not a measurement and is omitted. ``better`` is None where
    rounds cannot be ranked: an algorithm's options determine what it sends.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str
    unit: Unit
    source: Source
    better: Literal["high", "low"] | None
    lower: float | None = None
    upper: float | None = None

    def holds(self, value: float) -> bool:
        """True if ``value`` can be a measurement."""
        low, high = self.lower, self.upper
        return math.isfinite(value) and (low is None or low <= value) and (high is None or value <= high)

    def best(self, least: float, greatest: float) -> float | None:
        """Returns the better of a metric's extremes, or None if neither is."""
        return {"high": greatest, "low": least, None: None}[self.better]


METRICS = TypeAdapter(dict[str, Metric]).validate_json(Path(__file__).with_suffix(".json").read_bytes())


JUDGING = tuple(name for name, entry in METRICS.items() if entry.source == "evaluation" and entry.better)
"""Metrics that rounds can be compared by: measured by the service, with a better direction."""


def metric(name: str) -> Metric | None:
    """Returns the entry for ``name``, also for one label's (``rouge_l/cooking``); None for an algorithm's own."""
    return METRICS.get(name.partition("/")[0])


def names_of(source: Source) -> list[str]:
    """Returns the metrics of one source, in the catalog's order."""
    return [name for name, entry in METRICS.items() if entry.source == source]
