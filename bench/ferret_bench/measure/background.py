"""A repeated action in the background of a measurement."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def repeated(act: Callable[[], None], seconds: float) -> Generator[None]:
    """Calls ``act`` every ``seconds`` in a thread, for the length of a ``with`` block.

    The times are counted from the start of the block: the number of calls does not depend on the duration of ``act``.
    """
    over = threading.Event()

    def repeat() -> None:
        due = time.monotonic() + seconds
        while not over.wait(max(0.0, due - time.monotonic())):
            act()
            due += seconds

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def sampled(look: Callable[[], int], seconds: float) -> Generator[list[int]]:
    """Calls ``look`` at the start of a ``with`` block, every ``seconds`` during it, and at its end.

    Yields the list of results, which fills.
    """
    found = [look()]
    try:
        with repeated(lambda: found.append(look()), seconds):
            yield found
    finally:
        found.append(look())
