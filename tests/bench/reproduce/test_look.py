from __future__ import annotations

import math

import pytest

from ferret_bench.reproduce.look import slope, spread


def test_a_single_value_has_a_mean_and_no_spread():
    assert spread("x", [2.0]) == {"x_mean": 2.0, "x_std": None}
    assert spread("x", [1.0, 3.0]) == {"x_mean": 2.0, "x_std": pytest.approx(math.sqrt(2))}


def test_the_slope_is_the_exponent_of_a_power_law():
    assert slope([{"x": x, "y": 7 * x**-0.5} for x in (1.0, 4.0, 9.0)], "x", "y") == pytest.approx(-0.5)
