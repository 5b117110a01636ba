"""How measured values are spread."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, 99th percentile by nearest rank, and largest."""
    ordered = sorted(values)
    return {"p50": median(ordered), "p99": ordered[-(-99 * len(ordered) // 100) - 1], "max": ordered[-1]}
