"""Kernel launches: on the device of the kernel's vectors, with arithmetic exactly as written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ferret_core.projection.signs import TILE


def launch(kernel: Any, programs: int, vector: Tensor, *arguments: Any, **constants: Any) -> None:
    """Launches ``programs`` programs of ``kernel`` with ``vector`` as first argument; products and sums are not
    fused."""
    with torch.cuda.device_of(vector):
        kernel[(programs,)](vector, *arguments, **constants, enable_fp_fusion=False)


def signed(seed: int) -> int:
    """Returns the signed 64-bit integer with the bits of ``seed``: one type for all seeds, so one compiled kernel."""
    return seed - (seed >> 63 << 64)


def tiles(start: int, count: int) -> int:
    """Returns the number of the block's tiles that hold its elements start … start + count − 1."""
    return -(-(start % TILE + count) // TILE)


def stretches(start: int, count: int, size: int) -> Iterator[tuple[int, int]]:
    """Yields (first, last) of the parts of a vector that holds elements start … of a block, cut at multiples of
    size."""
    first = 0
    while first < count:
        last = min(count, first + size - (start + first) % size)
        yield first, last
        first = last


def aligned(start: int, *vectors: Tensor) -> bool:
    """True if elements ``start`` … of a block begin and end at multiples of 16 elements and of 16 bytes."""
    return not any((start | vector.numel() | vector.data_ptr()) & 15 for vector in vectors)
