"""Random signs: one bit per element, drawn 128 at a time, laid out so that 32 lanes each unpack one word together."""

from __future__ import annotations

import torch
from torch import Tensor

from ferret_core.projection.philox import Tag, Word, draw

LANES = 32
TILE = 4096
MINUS = torch.iinfo(torch.int32).min


def sign_bits(
    seed: int,
    block_id: int,
    start: int,
    stop: int,
    device: torch.device,
    *,
    row: Word = 0,
    tag: Tag = Tag.SIGNS,
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
