"""Intervals hold the true mean as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ferret_bench.measure.statistics import STUDENT, Interval, interval


@pytest.mark.parametrize("seeds", [2, 3, 8, 21, 40])
def test_95_of_100_intervals_hold_the_mean(seeds: int) -> None:
    draws = np.random.default_rng(seeds).normal(3.0, 2.0, (4000, seeds))
    found = [interval(row.tolist()) for row in draws]
    held = np.mean([abs(each.mean - 3.0) <= each.half for each in found if each is not None])
    assert held == pytest.approx(0.95, abs=0.015)


def test_by_hand() -> None:
    found = interval([1.0, 2.0, 3.0])
    assert found is not None
    assert found == pytest.approx((2.0, 4.303 / math.sqrt(3)))
    assert not found.decided
    assert Interval(3.0, 2.9).decided
    assert interval([1.0]) is None


def test_students_t_falls_towards_the_normals() -> None:
    assert sorted(STUDENT, reverse=True) == list(STUDENT)
    assert STUDENT[-1] > 1.96


def test_students_t_goes_on_where_the_table_ends() -> None:
    """For 21 and 39 degrees of freedom it is 2.0796 and 2.0227."""
    for seeds, t in ((22, 2.0796), (40, 2.0227)):
        found = interval([float(number) for number in range(seeds)])
        assert found is not None
        assert found.half == pytest.approx(t * np.std(range(seeds), ddof=1) / math.sqrt(seeds), rel=5e-4)
