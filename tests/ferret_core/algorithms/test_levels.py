from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferret_core.algorithms.configs.qsgd import level_layout, pack_levels, unpack_levels
from tests.refusals import refused


@given(st.integers(1, 127), st.integers(1, 300), st.integers(0, 2**32))
def test_what_is_packed_is_unpacked(s: int, count: int, seed: int) -> None:
    levels = np.random.default_rng(seed).integers(-s, s, count, endpoint=True)
    packed = pack_levels(levels, s)
    dtype, shape = level_layout(s, count)
    assert (packed.dtype, packed.shape) == (dtype, shape)
    np.testing.assert_array_equal(unpack_levels(packed, s, count), levels)


@pytest.mark.parametrize("s", range(1, 128))
def test_a_word_holds_as_many_as_it_can(s: int) -> None:
    (words,) = level_layout(s, 10_000).shape
    assert words == -(-10_000 // math.floor(64 / math.log2(2 * s + 1)))
    extremes = np.full(10_000, -s)
    np.testing.assert_array_equal(unpack_levels(pack_levels(extremes, s), s, 10_000), extremes)


def test_words_that_nobody_would_pack_are_refused() -> None:
    packed = pack_levels(np.ones(41, np.int64), 1)
    for wrong, says in [
        (packed + np.array([0, 3], np.uint64), "numbers after the first 41 are not zero"),
        (np.array([3**40, 0], np.uint64), "a word holds more than 40 digits of base 3"),
    ]:
        with refused("contribution.malformed", says):
            unpack_levels(wrong, 1, 41)
