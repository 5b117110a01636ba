"""Integers that stand for a unit's gradient never exceed the sensitivity that the noise is for."""

from __future__ import annotations

import numpy as np
import pytest

from ferret_core.privacy.lattice import to_lattice


@pytest.mark.slow
def test_a_million_vectors_of_any_shape_stay_within_the_sensitivity() -> None:
    check_vectors(1_000_000)


def test_vectors_of_any_shape_stay_within_the_sensitivity() -> None:
    check_vectors(20_000)


def check_vectors(count: int) -> None:
    rng = np.random.default_rng(7)
    for number in range(count):
        K = int(rng.integers(1, 65))
        tail = rng.standard_cauchy(K) if number % 3 == 0 else rng.normal(size=K)
        found = to_lattice(tail * 10.0 ** rng.integers(-30, 30))
        assert found.dtype == np.int64
        assert int(found @ found) <= K


def test_the_direction_is_kept() -> None:
    vector = np.random.default_rng(1).normal(size=20_000).astype(np.float32)
    found = to_lattice(vector)
    length = float(np.linalg.norm(found))
    assert found @ vector / (length * np.linalg.norm(vector)) > 0.95
    assert length == pytest.approx(np.sqrt(20_000), rel=0.02)
    assert (to_lattice(vector * np.float32(1e-20)) == found).all(), "a unit's length does not count"


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf, -np.inf])
def test_a_vector_without_direction_gives_zeros(value: float) -> None:
    assert not to_lattice(np.full(3, value)).any()


def test_the_largest_and_the_smallest_numbers_are_handled() -> None:
    assert to_lattice(np.array([1e300, 1e300, 0, 0])).tolist() == [1, 1, 0, 0]
    assert to_lattice(np.array([5e-324, 0, 0, 0])).tolist() == [2, 0, 0, 0]
