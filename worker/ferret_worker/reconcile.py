"""``reconcile``: re-sends lost work, expires leases, closes due rounds. Any number of copies may run at once."""

from __future__ import annotations

import logging
import threading

from ferret_db.engine import reconcile as engine
from ferret_db.engine.collect import EVERY_SECONDS, collect
from ferret_worker.context import Context

logger = logging.getLogger(__name__)


def reconcile(context: Context) -> None:
    """One sweep."""
    with context.database.begin() as s:
        engine.reconcile(s, context.settings.lease_seconds)


def collect_daily(context: Context) -> None:
    """Collects the garbage of the storage, if nobody has done so for a day."""
    collect(context.database, context.storage, every=EVERY_SECONDS)


class Reconciler(threading.Thread):
    """Reconciles every ``reconcile_seconds``, and collects garbage daily, beside the tasks, however long these are."""

    def __init__(self, context: Context) -> None:
        super().__init__(name="reconciler", daemon=True)
        self._context = context
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(self._context.settings.reconcile_seconds):
            for act in (reconcile, collect_daily):
                try:
                    act(self._context)
                except Exception:
                    logger.exception("%s failed; will retry", act.__name__)

    def stop(self) -> None:
        self._stopped.set()
        if self.is_alive():
            self.join()
