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
LANES = 32
TILE = 4096
"""Signs are one bit per element, drawn 128 at a time, laid out so that 32 lanes each unpack one word together."""
MINUS = torch.iinfo(torch.int32).min


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
    """Returns ⌊word·n / 2³²⌋, an integer below ``n`` ≤ 2⁴⁶; uniform up to n/2³². The long product takes two steps."""
    return (word * (n >> 16) + (word * (n & 0xFFFF) >> 16)) >> 16


def _multiply(multiplier: int, word: Word) -> tuple[Word, Word]:
    """Returns high and low half of (multiplier + 2³²)·word."""
    product = word * multiplier
    return (product >> 32) + word, product & LOW


def sign_bits(
    seed: int, block_id: int, start: int, stop: int, device: torch.device, *, row: Word = 0, tag: Tag = Tag.SIGNS
) -> Tensor:
    """Returns sign bits of elements start … stop−1, int32 (stop − start,): the top bit is set for minus.

    ``x.view(torch.int32) ^ sign_bits(...)`` is x with the signs applied, exactly. Several rows (k, 1) give the matrix
    (k, stop − start).
    """
    first, last = start // TILE, -(-stop // TILE)
    groups = torch.arange(LANES * first, LANES * last, device=device)
    drawn = draw(seed, groups, row, block_id, tag)
    words = drawn.unflatten(-2, (-1, LANES)).to(torch.int32)
    packed = words.transpose(-1, -2).unsqueeze(-2)
    shifts = torch.arange(32, dtype=torch.int32, device=device).view(-1, 1)
    bits = (packed << shifts).bitwise_and_(MINUS)
    return bits.flatten(-4)[..., start - TILE * first : stop - TILE * first]


def sign_bits_at(seed: int, block_id: int, elements: Tensor, *, row: Word = 0, tag: Tag = Tag.SIGNS) -> Tensor:
    """Returns sign bits of any ``elements``, int64 (n,) or a shape that broadcasts with ``row``: one call for each."""
    e = elements % TILE
    words = draw(seed, LANES * (elements // TILE) + e % LANES, row, block_id, tag)
    word = words.gather(-1, (e // 1024).expand(words.shape[:-1])[..., None])[..., 0]
    return (word << (e // LANES % 32)).to(torch.int32).bitwise_and_(MINUS)
