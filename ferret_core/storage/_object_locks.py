"""Coordination of processes on several machines through a bucket, by marks: small separate objects.

A bucket has no locks. But of two processes that each write a mark first and check for the other's mark afterwards, at
least one sees the other (as in Dekker's algorithm), because a listing shows everything that was written before it. So
two collectors may both stop, but never both continue. In the same way, either a writer sees the mark of the collector
that is about to delete its file, or the collector sees that the file is new.

A living process renews its mark. An old mark belongs to a killed process, and no longer counts.
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
"""Longer than a request takes with all its attempts: a dead process's requests are finished or will never be."""
LOOK_SECONDS = 0.2


class ObjectLocks:
    """The marks in one bucket."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    @contextmanager
    def holding(self, what: str) -> Generator[str]:
        """Holds a mark for the activity ``what``, renewed while the block runs; yields its key."""
        key = f"{FOLDER}/{what}/{secrets.token_hex(8)}"
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(RENEWED_SECONDS):
                with suppress(FerretError):  # the next may succeed, long before the mark expires
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
        """Shows writers of ``location``, while the block runs, that it is about to be deleted."""
        key = f"{_condemned(location)}{secrets.token_hex(8)}"
        self._bucket.put(key, b"")
        yield
        self._bucket.delete(key)  # not if the block failed: the store may still delete

    def others(self, what: str, own: str = "") -> bool:
        """True if another living process is doing ``what``."""
        return self._living(f"{FOLDER}/{what}/", own)

    def wait_for_none(self, what: str) -> None:
        """Waits until no living process is doing ``what``."""
        while self.others(what):
            time.sleep(LOOK_SECONDS)

    def was_condemned(self, location: str) -> bool:
        """True if a collector was about to delete ``location``; waits until none is."""
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
