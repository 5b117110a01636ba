"""A held lease: a thread extends it, and the work asks between steps whether it is still ours."""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from ferret_core.protocol.errors import FerretError
from ferret_db.database import Database
from ferret_db.engine import assignments
from ferret_db.tables import Assignment

logger = logging.getLogger(__name__)


class Lease:
    """Extends the assignment's lease each third of ``seconds`` while the block runs."""

    def __init__(self, database: Database, assignment: Assignment, seconds: float) -> None:
        self._database = database
        self._assignment = assignment
        self._seconds = seconds
        self._done = threading.Event()
        self._lost: FerretError | None = None
        self._thread = threading.Thread(target=self._extend, name=f"lease-{assignment.id}", daemon=True)

    def check(self, step: int) -> None:
        """Raises ``lease.lost`` when the work has been taken away: cancelled, or given to another."""
        if self._lost is not None:
            raise self._lost

    def __enter__(self) -> Lease:
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
                with self._database.begin() as s:
                    assignments.heartbeat(s, self._assignment.id, self._assignment.fence, self._seconds)
            except FerretError as error:
                self._lost = error
            except Exception:
                # A heartbeat that fails for the moment may succeed the next time; the lease's end decides.
                logger.exception("could not extend the lease on %s", self._assignment.id)
