"""How every kernel is started: on the device of its vectors, with arithmetic exactly as written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ferret_core.projection.signs import TILE


def launch(kernel: Any, programs: int, vector: Tensor, *arguments: Any, **constants: Any) -> None:
    """``programs`` programs of ``kernel``, whose first argument is ``vector``; no product is fused with a sum."""
    with torch.cuda.device_of(vector):
        kernel[(programs,)](vector, *arguments, **constants, enable_fp_fusion=False)


def signed(seed: int) -> int:
    """The signed 64-bit integer with the bits of ``seed``: one type for all seeds, so one compiled kernel."""
    return seed - (seed >> 63 << 64)


def tiles(start: int, count: int) -> int:
    """How many tiles of the block hold its elements start … start + count − 1."""
    return -(-(start % TILE + count) // TILE)


def stretches(start: int, count: int, size: int) -> Iterator[tuple[int, int]]:
    """(first, last) of the parts of a vector that holds elements start … of a block, cut at its multiples of size."""
    first = 0
    while first < count:
        last = min(count, first + size - (start + first) % size)
        yield first, last
        first = last


def aligned(start: int, *vectors: Tensor) -> bool:
    """Whether elements ``start`` … of a block begin and end where 16 elements, and 16 bytes, do."""
    return not any((start | vector.numel() | vector.data_ptr()) & 15 for vector in vectors)
