"""Something that goes on beside what is measured."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def repeated(act: Callable[[], None], seconds: float) -> Generator[None]:
    """Calls ``act`` every ``seconds`` in a thread, for the length of a ``with`` block."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(seconds):
            act()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
