"""``reconcile``: re-sends lost work, expires leases, closes due rounds. Any number of copies may run at once."""

from __future__ import annotations

import logging
import threading

from ferret_db.engine import reconcile as engine
from worker.context import Context

logger = logging.getLogger(__name__)


def reconcile(context: Context, subject: str = "") -> None:
    """One sweep; as a task it takes an id like every other and needs none."""
    with context.database.begin() as s:
        engine.reconcile(s)


class Reconciler(threading.Thread):
    """Reconciles every ``reconcile_seconds`` beside the tasks: a long task must not delay it."""

    def __init__(self, context: Context) -> None:
        super().__init__(name="reconciler", daemon=True)
        self._context = context
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(self._context.settings.reconcile_seconds):
            try:
                reconcile(self._context)
            except Exception:
                logger.exception("reconciling failed; it is tried again")

    def stop(self) -> None:
        self._stopped.set()
        self.join()
