"""Long vectors and blobs in pieces, so that neither copies nor the pages of a mapped file add up in memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

PIECE_BYTES = 8 << 20

Pieces = tuple[bytes | memoryview, ...]
"""A blob's bytes (views are of format B), in pieces that need not lie side by side."""


def size_of(pieces: Pieces) -> int:
    """Bytes of all of them."""
    return sum(map(len, pieces))


def mapped(file: BinaryIO) -> memoryview:
    """The file's bytes where they lie on the disk, as long as the view is held."""
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def places(array: NDArray[Any]) -> Iterator[slice]:
    """Slices along the first axis that together go through the array once.

    What has been read of a mapped file by the end of each is given back: it is read from the disk's cache if it is
    needed again.
    """
    rows = max(1, PIECE_BYTES * len(array) // max(1, array.nbytes))
    for begin in range(0, len(array), rows):
        yield slice(begin, begin + rows)
        _give_back(array)


def _give_back(array: NDArray[Any]) -> None:
    owner: Any = array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.obj if isinstance(owner, memoryview) else owner.base
    if isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        owner.madvise(mmap.MADV_DONTNEED)
