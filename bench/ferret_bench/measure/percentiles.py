"""Percentiles of measured values."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


def spread(values: Sequence[float]) -> dict[str, float]:
    """Returns median, 99th percentile by nearest rank, and maximum."""
    ordered = sorted(values)
    return {"p50": median(ordered), "p99": ordered[-(-99 * len(ordered) // 100) - 1], "max": ordered[-1]}
