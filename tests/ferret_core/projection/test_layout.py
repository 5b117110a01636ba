"""Every family is what the specification says, to the bit and for any shape: test_specification.py implements it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block
from tests.ferret_core.projection.test_specification import FAMILIES

SEED = 0x9E3779B97F4A7C15
HUGE = 2**33 + 5
SHAPES = {
    # Granules of 1024 (the cap), 256, 16, 2 and 1; with whole and broken last stripes and granules; K = 1 and K = d.
    "G": [(50_000, 1), (20_001, 9), (10_000, 78), (4096, 256), (777, 100), (50, 50), (1, 1)],
    # One chunk; several with a rest of five; a rest alone, of one element too; K = 1 and K = d; strata of two sizes.
    "H": [(4096, 3), (6149, 3000), (8192 + 349, 100), (777, 100), (50, 50), (13, 5), (3, 1), (1, 1)],
    "R": [(1, 1), (90, 7), (5000, 3)],
    "T": [(1, 1), (6, 2), (90, 7), (12_345, 3)],
    "I": [(90, 90)],
}


@pytest.mark.parametrize(("letter", "d", "K"), [(letter, *shape) for letter in SHAPES for shape in SHAPES[letter]])
def test_updates_are_added_up_in_the_order_of_the_specification(letter: str, d: int, K: int) -> None:
    c = torch.randn(K, generator=torch.Generator().manual_seed(0))
    found = basis(letter).reconstruct(c, d, Block(5, "w", d), 0, SEED)
    np.testing.assert_array_equal(found.numpy(), FAMILIES[letter](d, K, 5, SEED).reconstruct(c.numpy()))


@pytest.mark.parametrize(
    ("letter", "d", "K"),
    [("T", 12_345_678, 70_001), ("R", HUGE, 2**32), ("H", HUGE, 5), ("H", HUGE, 2**20 + 3), ("H", HUGE, 2**32 - 7)],
)
def test_entries_beyond_what_can_be_added_up(letter: str, d: int, K: int) -> None:
    family, block = FAMILIES[letter](d, K, 2**24 - 1, SEED), 2**24 - 1
    columns = [0, K - K // 3, K - 1]
    rows = {0, d // 3, d // 2, d - 1}
    if letter == "H":  # at both ends of a column's chunk, and beside them
        begin, _ = family.chunk(family.place(columns[1])[0])
        rows |= {begin, begin + 1234, begin + 4095, begin - 1, begin + 4096}
    drawn = basis(letter).entries(torch.tensor(sorted(rows)), torch.tensor(columns), Block(block, "w", d), K, SEED)
    assert drawn.tolist() == [[family.entry(i, k) for k in columns] for i in sorted(rows)]
