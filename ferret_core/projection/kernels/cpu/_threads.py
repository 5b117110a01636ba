"""Distribution of work over threads: as many as torch would use, in segments for the dense families, T and R."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ferret_core.projection.philox import TILE

SEGMENTS = 16
APPLIED = 4
"""Tiles per task when weights are moved: each task processes all columns of all terms."""


def share_out(work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> None:
    """Calls ``work`` with each of the tasks' arguments; the results must not depend on thread or order.

    Each thread takes the next task until all are taken. An exception in a task is raised here, after all threads
    stopped.
    """
    waiting = deque(tasks)

    def take() -> None:
        while waiting:
            try:
                task = waiting.popleft()
            except IndexError:
                return
            work(*task)

    threads = min(torch.get_num_threads(), len(waiting))
    if threads <= 1:
        take()
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(take) for _ in range(threads)]:
            done.result()


def ranges(total: int, step: int) -> list[tuple[int, int]]:
    """Splits 0 … total into stretches of ``step``."""
    return [(first, min(first + step, total)) for first in range(0, total, step)]


def tiles_of(start: int, length: int) -> tuple[int, int]:
    """Returns (first, last) number of the tiles with elements start … start + length − 1 of a block; last excluded."""
    return start // TILE, -(-(start + length) // TILE)


def stretches_of_tiles(start: int, length: int, step: int) -> list[tuple[int, int]]:
    """Splits the same tiles into stretches of ``step``."""
    first, last = tiles_of(start, length)
    return [(first + low, first + high) for low, high in ranges(last - first, step)]


def summed(work: Callable[..., None], source: tuple[Any, ...], draws: tuple[Any, ...], K: int) -> NDArray[np.float32]:
    """Returns fp32 (K,): Vᵀ·Δ in at most 16 segments of whole tiles for any number of threads, added in order.

    ``source`` is (before, after, start); ``work(*source, first, last, *draws, sums)`` adds up tiles first … last − 1.
    """
    _, after, start = source
    tiles = -(-len(after) // TILE) + 1
    segments = stretches_of_tiles(start, len(after), -(-tiles // SEGMENTS))
    sums = np.zeros((len(segments), K), np.float32)
    share_out(work, [(*source, first, last, *draws, sums[n]) for n, (first, last) in enumerate(segments)])
    return np.add.reduce(sums, axis=0)
