"""Random signs: one bit per element, drawn 128 at a time, laid out so that 32 lanes each unpack one word at once."""

from __future__ import annotations

import torch
from torch import Tensor

from ferret_core.projection.philox import Tag, draw

LANES = 32
TILE = 4096
MINUS = torch.iinfo(torch.int32).min


def sign_bits(seed: int, block_id: int, start: int, stop: int, device: torch.device) -> Tensor:
    """Sign bits of elements start … stop−1, int32 (stop − start,): the top bit is set where the sign is minus.

    ``x.view(torch.int32) ^ sign_bits(...)`` is x with the signs applied, exactly.
    """
    first, last = start // TILE, -(-stop // TILE)
    groups = torch.arange(LANES * first, LANES * last, device=device)
    words = draw(seed, groups, 0, block_id, Tag.SIGNS).view(-1, LANES, 4)
    packed = words.to(torch.int32).transpose(1, 2).contiguous().unsqueeze(2)
    shifts = torch.arange(32, dtype=torch.int32, device=device).view(-1, 1)
    bits = (packed << shifts).bitwise_and_(MINUS)
    return bits.view(-1)[start - TILE * first : stop - TILE * first]
