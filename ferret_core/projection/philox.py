"""Philox-4x32-10, the counter-based generator behind every basis: word n is one call, on any device, in any order.

John K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011. torch has no unsigned 32-bit
arithmetic, so words are int64 values below 2³².
"""

from __future__ import annotations

from enum import IntEnum

import torch
from torch import Tensor

from ferret_core.projection import FORMAT_VERSION

Word = Tensor | int
Words = tuple[Word, Word, Word, Word]

LOW = 0xFFFFFFFF
ROUNDS = 10
# The multipliers 0xD2511F53 and 0xCD9E8D57 minus 2³²: no product with a word overflows a signed 64-bit integer.
MULTIPLIERS = (0xD2511F53 - 2**32, 0xCD9E8D57 - 2**32)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)


class Tag(IntEnum):
    """Purpose of a word; the top byte of the third counter word."""

    TRUNCATED_NORMAL = 1
    DENSE_SIGNS = 2
    SIGNS = 3
    ROTATIONS = 4
    HADAMARD_ROWS = 5
    STOCHASTIC_ROUNDING = 6


def philox(counter: Words, key: tuple[int, int]) -> Words:
    """Returns four words for each counter; counter words are int64 tensors that broadcast together, or ints."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        high0, low0 = _multiply(MULTIPLIERS[0], c0)
        high1, low1 = _multiply(MULTIPLIERS[1], c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + KEY_STEPS[0]) & LOW, (k1 + KEY_STEPS[1]) & LOW
    return c0, c1, c2, c3


def draw(seed: int, group: Tensor, row: Word, block_id: int, tag: Tag) -> Tensor:
    """Draws the words of counters (group, row, block id | tag << 24, format version) under the 64-bit ``seed``: (…,
    4)."""
    words = philox((group, row, block_id | tag << 24, FORMAT_VERSION), (seed & LOW, seed >> 32))
    return torch.stack([torch.as_tensor(word) for word in words], dim=-1)


def uniform_below(word: Word, n: Word) -> Word:
    """Returns ⌊word·n / 2³²⌋: an integer below ``n`` ≤ 2⁴⁶, uniform up to n/2³²; in two steps, as the product is
    long."""
    return (word * (n >> 16) + (word * (n & 0xFFFF) >> 16)) >> 16


def _multiply(multiplier: int, word: Word) -> tuple[Word, Word]:
    """Returns high and low half of (multiplier + 2³²)·word."""
    product = word * multiplier
    return (product >> 32) + word, product & LOW
