"""Units are drawn one by one with the promised probability."""

from __future__ import annotations

import secrets

import numpy as np
import pytest

from ferret_core.privacy.sampling import draw


def test_each_unit_is_drawn_with_the_rate_and_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "token_bytes", np.random.default_rng(3).bytes)
    rounds = np.zeros((2000, 50))
    for row in rounds:
        row[draw(50, 0.05)] = 1
    assert rounds.mean() == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / rounds.size))
    assert rounds.sum(axis=1).var() == pytest.approx(50 * 0.05 * 0.95, rel=0.15)


def test_draws_differ_and_a_rate_of_one_takes_all() -> None:
    assert draw(10_000, 0.5) != draw(10_000, 0.5)
    assert draw(3, 1.0) == [0, 1, 2]
    assert draw(0, 0.5) == []
