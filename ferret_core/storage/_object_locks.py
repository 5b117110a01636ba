"""What processes on several machines tell each other through a bucket, by marks: small objects of their own.

A bucket has no locks. But of two processes that each write a mark first and look for the other's mark afterwards, at
least one sees the other (as in Dekker's algorithm), because a listing shows all that was written before it. So two
collectors may both give way, but never both go on. In the same way a writer sees the mark of the collector that is
about to delete its file, or the collector sees that the file is new.

A living process renews its mark. An old mark is that of a killed process, and counts no more.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from ferret_core.protocol.errors import FerretError
from ferret_core.storage._bucket import Bucket

FOLDER = ".marks"
RENEWED_SECONDS = 60.0
DEAD_SECONDS = 300.0
"""Longer than a request takes with all its attempts: what a dead process has asked for is done or never will be."""
LOOK_SECONDS = 0.2


class Marks:
    """The marks in one bucket."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    @contextmanager
    def holding(self, what: str) -> Generator[str]:
        """A mark that this process does ``what``, renewed while the block runs; its key."""
        key = f"{FOLDER}/{what}/{secrets.token_hex(8)}"
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(RENEWED_SECONDS):
                with suppress(FerretError):  # the next may succeed, long before the mark counts as a dead process's
                    self._bucket.put(key, b"")

        thread = threading.Thread(target=renew, name="ferret-mark", daemon=True)
        self._bucket.put(key, b"")
        thread.start()
        try:
            yield key
        finally:
            ended.set()
            thread.join()
            self._bucket.delete(key)

    @contextmanager
    def condemning(self, location: str) -> Generator[None]:
        """While the block runs, writers of ``location`` see that it is about to be deleted."""
        key = f"{_condemned(location)}{secrets.token_hex(8)}"
        self._bucket.put(key, b"")
        yield
        self._bucket.delete(key)  # not where the block failed: the store may still delete

    def others(self, what: str, own: str = "") -> bool:
        """Whether another living process does ``what``."""
        return self._living(f"{FOLDER}/{what}/", own)

    def wait_for_none(self, what: str) -> None:
        """Until no living process does ``what``."""
        while self.others(what):
            time.sleep(LOOK_SECONDS)

    def was_condemned(self, location: str) -> bool:
        """Whether a collector was about to delete ``location``; none is any more when this returns."""
        found = False
        while self._living(_condemned(location), ""):
            found = True
            time.sleep(LOOK_SECONDS)
        return found

    def _living(self, prefix: str, own: str) -> bool:
        found = [mark for mark in self._bucket.list(prefix) if mark.location != own]
        return bool(found) and max(mark.stored_at for mark in found) > self._bucket.clock() - DEAD_SECONDS


def _condemned(location: str) -> str:
    return f"{FOLDER}/condemned/{location}/"
