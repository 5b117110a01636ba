"""A held lease: a thread extends it, and the work checks it between steps."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from types import TracebackType

from ferret_core.protocol.errors import FerretError
from ferret_db.database import Database
from ferret_db.engine import assignments
from ferret_db.tables import Assignment

logger = logging.getLogger(__name__)


class LeaseKeeper:
    """Extends the lease each third of ``seconds`` during the block; ``stopping``: the process must return the work."""

    def __init__(
        self, database: Database, assignment: Assignment, seconds: float, stopping: Callable[[], bool] = lambda: False
    ) -> None:
        self._stopping = stopping
        self._database = database
        self._assignment = assignment
        self._seconds = seconds
        self._done = threading.Event()
        self._lost: FerretError | None = None
        # A new thread's context is empty: it gets ours, so that its logs carry the same ids.
        extend, name = partial(copy_context().run, self._extend), f"lease-{assignment.id}"
        self._thread = threading.Thread(target=extend, name=name, daemon=True)

    def check(self, step: int) -> None:
        """Raises ``lease.lost`` if the work was cancelled or given to another worker, and ``worker.stopping``."""
        if self._lost is not None:
            raise self._lost
        if self._stopping():
            raise FerretError("worker.stopping", f"{self._assignment.id} was returned after local step {step}")

    def __enter__(self) -> LeaseKeeper:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()

    def _extend(self) -> None:
        while self._lost is None and not self._done.wait(self._seconds / 3):
            try:
                with self._database.begin(flush=False) as s:
                    assignments.heartbeat(s, self._assignment.id, self._assignment.fence, self._seconds)
            except FerretError as error:
                self._lost = error
            except Exception:
                # A heartbeat that fails temporarily may succeed the next time. The lease's end decides.
                logger.exception("could not extend the lease on %s", self._assignment.id)
