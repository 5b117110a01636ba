"""Long vectors and blobs in pieces, so that copies and pages of mapped files do not add up in memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

PIECE_BYTES = 8 << 20

Pieces = tuple[bytes | memoryview, ...]
"""A blob's bytes in pieces that need not be contiguous; memory views have format B."""


def size_of(pieces: Pieces) -> int:
    """Returns the total number of bytes."""
    return sum(map(len, pieces))


def mapped(file: BinaryIO) -> memoryview:
    """Maps the file read-only; the mapping lives as long as the view."""
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def places(array: NDArray[Any]) -> Iterator[slice]:
    """Yields slices along the first axis that together cover the array once.

    After each slice, its pages of a mapped file are released. If they are read again, they come from the disk's cache.
    """
    rows = max(1, PIECE_BYTES * len(array) // max(1, array.nbytes))
    for begin in range(0, len(array), rows):
        yield slice(begin, begin + rows)
        release(array)


def release(data: NDArray[Any] | memoryview | bytes) -> None:
    """Releases the pages of a mapped file; does nothing for other memory."""
    owner: Any = data
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.obj if isinstance(owner, memoryview) else owner.base
    if isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        owner.madvise(mmap.MADV_DONTNEED)
