"""Of very many blocks neighbours share a figure, and no square is lost."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ferret_core.aggregation.statistics.cosines import InnerProducts, cosines
from ferret_core.aggregation.statistics.schema import (
    MOST_BLOCKS,
    UpdateStatistics,
    group_blocks,
    root_mean_squares,
    sums,
)
from ferret_core.projection.blocks import cut


def test_few_blocks_are_parts_as_they_are() -> None:
    parts = group_blocks(cut({"a": 4, "b": 6}, "tensor"))
    assert [(part.name, part.size) for part in parts] == [("a", 4), ("b", 6)]
    assert root_mean_squares(np.array([16.0, 24.0]), parts) == [2.0, 2.0]


@pytest.mark.parametrize("count", [MOST_BLOCKS, MOST_BLOCKS + 1, 3 * MOST_BLOCKS - 1, 10_000])
def test_many_blocks_are_put_together(count: int) -> None:
    blocks = cut({"w": 2 * count + 1}, count)
    parts = group_blocks(blocks)
    assert MOST_BLOCKS / 2 <= len(parts) <= MOST_BLOCKS
    assert sum(part.size for part in parts) == 2 * count + 1
    squares = np.arange(count, dtype=np.float64)
    found = np.array(root_mean_squares(squares, parts))
    assert (found**2 * [part.size for part in parts]).sum() == pytest.approx(squares.sum(), rel=1e-3)
    assert sum(sums(np.ones(count), parts)) == count


def test_two_hundred_rounds_of_a_large_model_stay_small() -> None:
    numbers = [1.234e-5] * 300
    pairs: list[float | None] = [-0.01234] * (60 * 59 // 2)
    told = UpdateStatistics.model_validate(
        {"step": numbers, "weights": numbers, "noise": numbers, "update": numbers, "K": numbers}
        | {"agreement": {"participants": [f"client-{n:03}" for n in range(60)], "cosines": pairs, "errors": pairs}}
    )
    assert len(json.dumps(told.model_dump(mode="json"))) < 60_000


def test_who_has_not_moved_has_no_cosine() -> None:
    products = InnerProducts(np.array([[4.0, 0.0], [0.0, 0.0]]), np.zeros((2, 2)))
    agreement = cosines([products]).agreement(["a", "b"])
    assert (agreement.cosines, agreement.errors) == ([None], [None])
