"""Intervals hold the true mean as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from ferret_bench.paper.reruns.interval import interval


@pytest.mark.parametrize("seeds", [2, 3, 8, 21, 40])
def test_95_of_100_intervals_hold_the_mean(seeds: int) -> None:
    draws = np.random.default_rng(seeds).normal(3.0, 2.0, (4000, seeds))
    found = [interval(row.tolist()) for row in draws]
    held = np.mean([abs(each.mean - 3.0) <= each.half for each in found if each is not None])
    assert held == pytest.approx(0.95, abs=0.015)
