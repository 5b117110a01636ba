"""Distribution of work over threads: as many as torch would use."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from ferret_core.projection.signs import TILE


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
    """Returns (first, last) number of the tiles that hold elements start … start + length − 1 of a block; last
    excluded."""
    return start // TILE, -(-(start + length) // TILE)


def stretches_of_tiles(start: int, length: int, step: int) -> list[tuple[int, int]]:
    """Splits the same tiles into stretches of ``step``."""
    first, last = tiles_of(start, length)
    return [(first + low, first + high) for low, high in ranges(last - first, step)]
