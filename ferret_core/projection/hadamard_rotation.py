"""A randomized Hadamard rotation of a whole vector: random signs, then a transform in chunks of 4,096.

The rotation of the family H (:mod:`ferret_core.projection.bases.hadamard`) without sampling: y = H·(s∘x)/√m, with the
inverse s∘(H·y/√m). It preserves lengths and angles. The entries of a chunk become similar and almost normally
distributed, unless a few of them dominate it. The last chunk is padded with zeros.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from ferret_core.projection.bases.hadamard import CHUNK, Chunks
from ferret_core.projection.signs import sign_bits

STRETCH = 256 * CHUNK


def rotate(vector: Tensor, seed: int) -> Tensor:
    """Returns y of ``vector``, fp32 (d,): fp32 (⌈d/4096⌉, 4096), the same bits for any number of threads."""
    filled = pad(vector, (0, -len(vector) % CHUNK))
    parts = filled.split(STRETCH)
    return torch.cat([_transform(_signed(part, n, seed)) for n, part in enumerate(parts)]).view(-1, CHUNK)


def rotate_back(rotated: Tensor, seed: int, d: int) -> Tensor:
    """Returns the vector, fp32 (d,), that ``rotate`` maps to ``rotated``, fp32 (⌈d/4096⌉, 4096)."""
    parts = rotated.reshape(-1).split(STRETCH)
    return torch.cat([_signed(_transform(part), n, seed) for n, part in enumerate(parts)])[:d]


def _signed(part: Tensor, number: int, seed: int) -> Tensor:
    start = number * STRETCH
    signs = sign_bits(seed, 0, start, start + len(part), part.device)
    return (part.view(torch.int32) ^ signs).view(torch.float32)


def _transform(part: Tensor) -> Tensor:
    return Chunks(((len(part) // CHUNK, CHUNK),)).transform(part)
