"""``reconcile``: resends lost work, ends expired leases, closes due rounds. Several copies may run at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection

from ferret_core.protocol.task_names import Queue
from ferret_db.engine import reconcile as engine
from ferret_db.engine.garbage_collection import EVERY_SECONDS, collect
from ferret_db.engine.leader import Leader
from ferret_db.repositories import service_clock
from ferret_runtime.broker.redis_client import Lengths
from ferret_worker.worker_state import WorkerState

logger = logging.getLogger(__name__)


PATIENCE = 3
"""Missed sweeps before another process takes over."""


def reconcile(context: WorkerState, drained: Collection[Queue] | None = ()) -> None:
    """Runs one sweep. ``drained`` are the broker's empty queues, None if it does not answer: then nothing is sent."""
    engine.reconcile(context.database, context.settings.lease_seconds, drained)


def collect_daily(context: WorkerState) -> None:
    """Collects the storage's garbage, at most daily."""
    collect(context.database, context.storage, every=EVERY_SECONDS)


class Reconciler(threading.Thread):
    """Reconciles on this process's turns, and collects garbage daily, in parallel to tasks of any length."""

    def __init__(self, context: WorkerState, who: str) -> None:
        super().__init__(name="reconciler", daemon=True)
        settings = context.settings
        self._context = context
        self._lengths = Lengths(settings.broker_url)
        patience = PATIENCE * settings.reconcile_seconds
        self._timekeeper = Leader(context.database, who, patience, settings.lease_seconds)
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(self._context.settings.reconcile_seconds):
            for act in (self._reconcile, self._collect):
                try:
                    act()
                except Exception:
                    logger.exception("%s failed; will retry", act.__name__.removeprefix("_"))
        self._lengths.close()

    def stop(self) -> None:
        self._stopped.set()
        if self.is_alive():
            self.join()
        self._timekeeper.leave()

    def _reconcile(self) -> None:
        if not self._timekeeper.turn():
            return
        drained = self._drained()
        with self._context.database.read() as s:
            silent = service_clock.broker_silent_since(s) is not None
        if silent != (drained is None):
            with self._context.database.begin(flush=False) as s:
                service_clock.broker_answers(s, yes=drained is not None)
        reconcile(self._context, drained)

    def _collect(self) -> None:
        collect_daily(self._context)

    def _drained(self) -> frozenset[Queue] | None:
        """Queues without a message, not counting one being worked on. None if the broker does not answer."""
        try:
            return frozenset(queue for queue, length in self._lengths.read().items() if not length)
        except ConnectionError as error:
            logger.warning("%s", error)
            return None
