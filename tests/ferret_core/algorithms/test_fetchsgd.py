from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from ferret_core.algorithms.base import Weighted
from ferret_core.projection.kernels.cpu.count_sketch import estimates, sketch
from ferret_core.projection.philox import Tag
from ferret_core.projection.philox import draw as words_of
from ferret_core.protocol.wire import Array


def test_an_entry_lies_where_its_word_says() -> None:
    """Against the generator's own definition: column and sign of single entries, in a table of three rows."""
    for i in (0, 255, 256, 1023, 1024, 5000):
        unit = np.zeros(5001, np.float32)
        unit[i] = 1
        expected = np.zeros((3, 97), np.float32)
        tile, e = divmod(i, 1024)
        for row in range(3):
            group = torch.tensor([256 * tile + e % 256])
            word = int(words_of(2**63 + 5, group, row, 0, Tag.SIGNS)[0, e // 256])
            expected[row, (word >> 1) * 97 >> 31] = -1 if word & 1 else 1
        np.testing.assert_array_equal(sketch(unit, 3, 97, 2**63 + 5), expected)


def test_a_sketch_is_linear(draw: Callable[..., Array]) -> None:
    first, other = draw(5000, 1), draw(5000, 2)
    both = sketch(first + 2 * other, 3, 50, 7)
    np.testing.assert_array_equal(both, sketch(first, 3, 50, 7) + 2 * sketch(other, 3, 50, 7))


@pytest.mark.parametrize("rows", [1, 4, 5])
def test_an_estimate_is_the_median_of_the_rows(rows: int, draw: Callable[..., Array]) -> None:
    table = sketch(draw(2000), rows, 60, 3)
    found = []
    for i in (0, 999, 1999):
        unit = np.zeros(2000, np.float32)
        unit[i] = 1
        found.append(np.median((sketch(unit, rows, 60, 3) * table).sum(axis=1)))
    np.testing.assert_array_equal(estimates(table, 2000, 3)[[0, 999, 1999]], np.array(found, np.float32))


def test_heavy_hitters_are_found_in_noise() -> None:
    draws = np.random.default_rng(0)
    vector = draws.standard_normal(100_000).astype(np.float32)
    heavy = np.sort(draws.choice(100_000, 10, replace=False))
    vector[heavy] = 300 * draws.choice([-1, 1], 10)
    found = estimates(sketch(vector, 5, 4000, 1), 100_000, 1)
    np.testing.assert_array_equal(np.sort(np.argsort(-np.abs(found))[:10]), heavy)
    np.testing.assert_allclose(found[heavy], vector[heavy], atol=40)


def test_the_bits_do_not_depend_on_the_threads(draw: Callable[..., Array]) -> None:
    vector, threads = np.random.default_rng(0).standard_normal(200_000).astype(np.float32), torch.get_num_threads()
    tables, found = [], []
    try:
        for count in (1, 4):
            torch.set_num_threads(count)
            tables.append(sketch(vector, 5, 300, 2))
            found.append(estimates(tables[-1], len(vector), 2))
    finally:
        torch.set_num_threads(threads)
    np.testing.assert_array_equal(*tables)
    np.testing.assert_array_equal(*found)


def test_a_table_that_is_large_enough_loses_nothing(lab: Any, weights: Any, draw: Callable[..., Array]) -> None:
    algorithm, updates = lab.algorithm("fetchsgd", columns=5000, k=47, momentum=0), [draw(47, 1), draw(47, 2)]
    done = lab.round(algorithm, weights((5, 8), (7,)), updates, weights=[1, 3])
    np.testing.assert_allclose(done.moved, (updates[0] + 3 * updates[1]) / 4, rtol=0, atol=1e-6)
    np.testing.assert_allclose(done.state["error"], 0, atol=1e-6)


def test_momentum_and_error_build_up_in_the_sketch(lab: Any, weights: Any) -> None:
    """One entry moves a round, and is done with; the other waits in the error and gathers momentum."""
    model, algorithm = weights((10,)), lab.algorithm("fetchsgd", columns=5000, k=1, momentum=0.5)
    state = algorithm.init_state(model, 0)
    rounds = []
    for large, small in [(4.0, 3.0), (0.0, 0.0), (0.0, 0.0)]:
        update = np.array([large, small, *[0] * 8], np.float32)
        moved, state, _ = lab.round(algorithm, model, [update], state=state)
        rounds.append(moved[:2].tolist())
    # u is (4, 3), (0, 1.5), (0, 0); e before the move (4, 3), (0, 4.5), (0, 0).
    assert rounds == [[4, 0], [0, 4.5], [0, 0]]


def test_a_table_that_is_far_too_small_does_not_diverge(lab: Any, weights: Any, draw: Callable[..., Array]) -> None:
    """More entries are moved than the table has columns: what is taken out of it must not come back larger."""
    model, algorithm = weights((4000,)), lab.algorithm("fetchsgd", columns=100, k=1000, momentum=0)
    state = algorithm.init_state(model, 0)
    moves = []
    for number in range(12):
        moved, state, _ = lab.round(algorithm, model, [draw(4000, number)], state=state)
        moves.append(float(np.linalg.norm(moved)))
    assert max(moves) < 2 * moves[0]


def test_the_rate_scales_what_enters_the_error(lab: Any, weights: Any) -> None:
    model, algorithm = weights((10,)), lab.algorithm("fetchsgd", columns=5000, k=10, momentum=0)
    state, before = algorithm.init_state(model, 0), model.flat
    contribution = lab.participate(algorithm, model, state, np.arange(10, dtype=np.float32)).contribution
    lab.fold(algorithm, model, state, Weighted(1.0, contribution), rate=0.5)
    np.testing.assert_allclose(before - model.flat, np.arange(10) / 2, atol=1e-6)
