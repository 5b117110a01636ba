from __future__ import annotations

import numpy as np
import pytest

from ferret_core.protocol.spec import RobustSpec
from ferret_core.server import robust_mean as module
from ferret_core.server.robust_mean import robust_mean


def test_an_array_without_numbers_stays_empty() -> None:
    """PowerSGD sends factors without a number where all tensors go whole."""
    sent = [{"P": np.zeros((0, 3), np.float32), "whole": np.full(2, n, np.float32)} for n in range(3)]
    found = robust_mean(RobustSpec(rule="median"), lambda: sent, 3)
    assert (found["P"].shape, found["P"].dtype, found["whole"].tolist()) == ((0, 3), np.float32, [1, 1])


def test_the_median_of_parts_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = [{"update": row} for row in np.random.default_rng(0).normal(size=(5, 3, 7)).astype(np.float32)]
    whole = robust_mean(RobustSpec(rule="median"), lambda: sent, 5)["update"]
    monkeypatch.setattr(module, "HELD_NUMBERS", 20)
    assert np.array_equal(robust_mean(RobustSpec(rule="median"), lambda: sent, 5)["update"], whole)
    assert np.array_equal(whole, np.median([each["update"] for each in sent], axis=0))
