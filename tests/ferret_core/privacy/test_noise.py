"""The noise is the discrete Gaussian that the accounting rests on, and comes from the system's entropy."""

from __future__ import annotations

import secrets

import numpy as np
import pytest

from ferret_core.privacy import noise
from ferret_core.privacy.noise import discrete_gaussian, noise_table

COUNT = 200_000


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same entropy in every run, so that no test fails once in a million runs."""
    monkeypatch.setattr(secrets, "token_bytes", np.random.default_rng(5).bytes)


@pytest.mark.usefixtures("seeded")
@pytest.mark.parametrize("deviation", [0.7, 4.0, 41.3])
def test_draws_follow_the_discrete_gaussian(deviation: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "CHUNK", 30_001)
    drawn = discrete_gaussian(deviation, COUNT)
    points = np.arange(-round(14 * deviation), round(14 * deviation) + 1)
    chances = np.exp(-(points**2) / (2 * deviation**2))
    expected = np.cumsum(chances / chances.sum())
    found = np.searchsorted(np.sort(drawn), points, side="right") / COUNT
    assert np.abs(found - expected).max() < 2 / np.sqrt(COUNT)
    assert (drawn.dtype, drawn.shape) == (np.int64, (COUNT,))
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 5 / np.sqrt(COUNT)


def test_the_table_is_symmetric_and_ends_where_nothing_is_left() -> None:
    table = noise_table(4.0)
    assert len(table.exact) == 2 * table.reach
    for below, above in zip(table.exact, reversed(table.exact), strict=True):
        assert abs(below + above - 2**128) <= 1
    assert table.exact[0] < 2


def test_a_draw_within_one_upper_word_is_decided_by_all_128_bits() -> None:
    table = noise_table(4.0)
    for entry in (0, 1, table.reach, 2 * table.reach - 1):
        bound = table.exact[entry]
        for value, expected in ((bound - 1, entry), (bound, entry + 1)):
            if value >= 0:
                words = np.array([[value >> 64, value & (2**64 - 1)]], np.uint64)
                found = int(table.look_up(words)[0]) + table.reach
                assert found == np.searchsorted(np.array(table.exact, object), value, side="right")
                assert found >= expected or table.exact[entry] == table.exact[entry - 1]


def test_two_calls_never_give_the_same_noise() -> None:
    assert (discrete_gaussian(50.0, 1000) != discrete_gaussian(50.0, 1000)).any()
    assert discrete_gaussian(50.0, 0).shape == (0,)
