"""Periodic sampling of a figure in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def sampled(look: Callable[[], int], seconds: float) -> Generator[list[int]]:
    """During the block a thread calls ``look`` every ``seconds``. Yields the list of results, which begins with 0."""
    found, over = [0], threading.Event()

    def sample() -> None:
        while not over.wait(seconds):
            found.append(look())

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()
