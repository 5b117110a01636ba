"""Percentiles of measured values, and confidence intervals from a few seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple


def spread(values: Sequence[float]) -> dict[str, float]:
    """Returns median, 99th percentile by nearest rank, and maximum."""
    ordered = sorted(values)
    return {"p50": median(ordered), "p99": ordered[-(-99 * len(ordered) // 100) - 1], "max": ordered[-1]}


STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
"""Student's t for 95 %, two-sided, by degrees of freedom from 1 on."""
NORMAL = 1.960


class Interval(NamedTuple):
    """``mean`` ± ``half``: 95 of 100 such intervals contain the true mean."""

    mean: float
    half: float

    @property
    def decided(self) -> bool:
        """True if zero is outside."""
        return abs(self.mean) > self.half

    def widened(self, error: float) -> Interval:
        """Returns the interval with an independent error of this standard deviation added."""
        return Interval(self.mean, math.hypot(self.half, NORMAL * error))


def interval(values: Sequence[float]) -> Interval | None:
    """Returns Student's interval, or None with fewer than two values."""
    if len(values) < 2:
        return None
    freedom = len(values) - 1
    t = STUDENT[freedom - 1] if freedom <= len(STUDENT) else _student(freedom)
    return Interval(statistics.fmean(values), t * statistics.stdev(values) / math.sqrt(len(values)))


def _student(freedom: int) -> float:
    """Returns Student's t from Fisher's expansion, right to 0.001 above the table."""
    z = NORMAL
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def ratio_error(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Returns the standard error of Σ numerators / Σ denominators over a sample of at least two pairs.

    Linearised: Cochran, Sampling Techniques (1977), equation 6.13 without the correction for a finite population.
    """
    count, total = len(numerators), math.fsum(denominators)
    ratio = math.fsum(numerators) / total
    squares = math.fsum((a - ratio * b) ** 2 for a, b in zip(numerators, denominators, strict=True))
    return math.sqrt(count / (count - 1) * squares) / total
