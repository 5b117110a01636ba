"""A round's deadline from arrivals: between bounds, enough for the quorum, and not in the hands of a few."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferret_core.rounds.deadline import (
    DEFAULT_SECONDS,
    DEVIATIONS,
    LONGEST_SECONDS,
    MARGIN,
    SHORTEST_SECONDS,
    adaptive,
)

seconds = st.floats(0, 1e6) | st.just(math.inf)
shares = st.floats(0.01, 1)


@given(st.lists(seconds, max_size=40), shares, st.integers(1, 3))
def test_it_stays_between_its_bounds(arrivals: list[float], share: float, attempt: int) -> None:
    assert SHORTEST_SECONDS <= adaptive(arrivals, share, attempt) <= LONGEST_SECONDS


@given(st.lists(seconds, min_size=3, max_size=40), shares, st.randoms())
def test_the_order_of_arrivals_does_not_matter(arrivals: list[float], share: float, random: object) -> None:
    shuffled = arrivals.copy()
    random.shuffle(shuffled)
    assert adaptive(shuffled, share) == adaptive(arrivals, share)


@given(st.lists(st.floats(0, LONGEST_SECONDS / 2), min_size=3, max_size=40), shares)
def test_the_quorum_and_half_of_all_would_have_come_in_time(arrivals: list[float], share: float) -> None:
    in_time = sum(arrival <= adaptive(arrivals, share) for arrival in arrivals)
    assert in_time >= max(len(arrivals) / 2, Fraction(share) * len(arrivals))


@given(st.lists(st.floats(0, 10_000), min_size=2, max_size=20), st.data())
def test_a_minority_moves_it_no_further_than_the_others_spread(honest: list[float], data: st.DataObject) -> None:
    hostile = data.draw(st.lists(seconds, max_size=len(honest) - 1))
    low, high = min(honest), max(honest)
    found = adaptive(honest + hostile, 0.5)
    if len(honest) + len(hostile) > 2:
        assert max(MARGIN * low, SHORTEST_SECONDS) <= found
        assert found <= max(high + DEVIATIONS * (high - low), MARGIN * high, SHORTEST_SECONDS)


@given(st.lists(seconds, max_size=40), shares)
def test_after_each_missed_quorum_there_is_at_least_twice_as_long(arrivals: list[float], share: float) -> None:
    assert adaptive(arrivals, share, attempt=2) >= 2 * DEFAULT_SECONDS
    assert adaptive(arrivals, share, attempt=3) >= 4 * DEFAULT_SECONDS
    assert adaptive([], share, attempt=1000) == LONGEST_SECONDS


def test_who_needs_hours_gets_them_within_the_attempts_there_are_by_default() -> None:
    """Three participants who need 3.5 hours miss two deadlines, and not the third."""
    assert [adaptive([math.inf] * 3 * (attempt - 1), 0.5, attempt) for attempt in (1, 2, 3)] == [3600, 7200, 14_400]


@pytest.mark.parametrize(
    ("arrivals", "share", "expected"),
    [
        ([], 0.5, DEFAULT_SECONDS),
        ([400.0, 400.0], 0.5, DEFAULT_SECONDS),
        ([400.0, 400.0, 400.0], 0.5, 800.0),
        ([1000.0, 1100.0, 1200.0, 900.0, 800.0], 0.5, 2000.0),
        ([1000.0, 1300.0, 1600.0, 700.0, 400.0], 0.5, 2800.0),
        ([1000.0] * 9 + [math.inf], 0.5, 2000.0),
        ([1000.0] * 9 + [math.inf], 1.0, DEFAULT_SECONDS),
        ([1000.0] * 9 + [3000.0], 1.0, 6000.0),
        ([1000.0, math.inf, math.inf], 0.3, DEFAULT_SECONDS),
        ([2.0] * 8, 0.5, SHORTEST_SECONDS),
        ([1e6] * 8, 0.5, LONGEST_SECONDS),
    ],
)
def test_examples(arrivals: list[float], share: float, expected: float) -> None:
    assert adaptive(arrivals, share) == expected
