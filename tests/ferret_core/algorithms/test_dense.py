from __future__ import annotations

import weakref
from collections.abc import Iterator

import numpy as np

from ferret_core.algorithms._dense import average
from ferret_core.algorithms.base import Weighted
from tests.ferret_core.replicas import contribution


def test_a_mean_holds_no_contribution_but_the_last() -> None:
    """Whole updates are as large as the model."""
    earlier: list[weakref.ref[object]] = []

    def received() -> Iterator[Weighted]:
        for number in range(4):
            assert [each() for each in earlier[:-1]] == [None] * (number - 1 if number else 0)
            sent = contribution({"update": np.full(3, number, np.float32)})
            earlier.append(weakref.ref(sent))
            yield Weighted(1.0, sent)

    assert average(received())["update"].tolist() == [1.5] * 3
