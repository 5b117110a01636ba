"""A periodic check of long work that it is still needed."""

from __future__ import annotations

import time

from ferret_core.protocol.errors import FerretError
from ferret_db.repositories import experiments
from ferret_worker.worker_state import WorkerState

LOOK_SECONDS = 5.0


class CancellationCheck:
    """Checks the process on every call, the experiment every few seconds."""

    def __init__(self, context: WorkerState, experiment_id: str) -> None:
        self._context = context
        self._experiment_id = experiment_id
        self._looked = time.monotonic()

    def check(self) -> None:
        """Raises ``worker.stopping``, and ``experiment.conflict`` once the experiment is over."""
        self._context.require_wanted()
        if self._context.stopping:
            raise FerretError("worker.stopping", f"work on {self._experiment_id} was returned")
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        with self._context.database.read() as s:
            state = experiments.get(s, self._experiment_id).state
        self._looked = time.monotonic()
        if state.finished:
            raise FerretError("experiment.conflict", f"{self._experiment_id} is {state}: this work is no longer needed")
