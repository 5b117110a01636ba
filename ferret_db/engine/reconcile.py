"""Recovery from crashes: unsent and lost messages, lost leases, missed deadlines, forgotten rounds.

A sweep first reads, in read-only transactions, and then changes what it found in many short ones. So nobody waits for a
sweep, whatever its size. Everything it repeats is idempotent. Any number of processes may run it; one is enough.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from ferret_core.protocol.task_names import Queue
from ferret_db.database import Database
from ferret_db.engine import secure_sums, task_attempts
from ferret_db.engine.rounds import freeze_if_due
from ferret_db.repositories import assignments, outbox, overdue, task_runs, workers
from ferret_db.repositories.outbox import BATCH
from ferret_db.repositories.overdue import OpenRound, Patience

logger = logging.getLogger(__name__)
T = TypeVar("T")

UNSENT_SECONDS = 2.0
TAKEN_KEPT_SECONDS = 3600.0
WORKERS_KEPT_SECONDS = 24 * 3600.0


def reconcile(database: Database, lease_seconds: float = 60.0, drained: Collection[Queue] | None = ()) -> None:
    """Runs one sweep over everything unfinished. Tasks without a worker are requested again after half a lease.

    ``drained`` names the queues in which the broker had no message a moment ago. It is None if the broker did not
    answer; then nothing is sent to it.
    """
    patience = Patience(lease_seconds / 2, lease_seconds / 4, workers.gone_after(lease_seconds))
    _forget(database, patience)
    if drained is not None:
        _in_batches(database, lambda s: outbox.lost(s, UNSENT_SECONDS, patience.gone, drained), outbox.recall)
    _recover(database, patience)
    _tend(database, overdue.rounds, lambda s, round_id: freeze_if_due(s, round_id))
    _tend(database, overdue.stages, _end_stage)
    _tend(database, overdue.leases, _release)
    _call(database, patience)
    if drained is not None:
        _send(database)


def _forget(database: Database, patience: Patience) -> None:
    with database.read() as s:
        gone = workers.forgettable(s, WORKERS_KEPT_SECONDS)
    if gone:
        with database.begin() as s:
            workers.forget(s, WORKERS_KEPT_SECONDS)
    _in_batches(database, lambda s: outbox.spent(s, TAKEN_KEPT_SECONDS, patience.lost), outbox.forget)


def _in_batches(
    database: Database, find: Callable[[Session], Sequence[int]], change: Callable[[Session, Sequence[int]], None]
) -> None:
    while True:
        with database.read() as s:
            found = find(s)
        if found:
            with database.begin() as s:
                change(s, found)
        if len(found) < BATCH:
            return


def _recover(database: Database, patience: Patience) -> None:
    with database.read() as s:
        orphaned = task_runs.orphaned(s, patience.gone)
    for run in orphaned:
        with database.begin() as s:
            task_attempts.recover(s, run)


def _tend(
    database: Database, find: Callable[[Session], Sequence[OpenRound]], act: Callable[[Session, str], object]
) -> None:
    """One transaction each: an experiment that cannot be handled does not block the others."""
    with database.read() as s:
        found = find(s)
    for round_ in found:
        try:
            with database.begin() as s:
                act(s, round_.id)
        except SQLAlchemyError:
            raise
        except Exception:
            logger.exception("%s could not be checked; it will be retried", round_.experiment_id)


def _end_stage(s: Session, round_id: str) -> None:
    """Ends an overdue stage of a secure sum: that of the deals, or one in which the round is frozen."""
    freeze_if_due(s, round_id)
    secure_sums.end_if_overdue(s, round_id)


def _release(s: Session, round_id: str) -> None:
    """Ends a batch of expired leases. :func:`_send` requests the work."""
    assignments.release_lost(s, round_id, BATCH)


def _call(database: Database, patience: Patience) -> None:
    with database.read() as s:
        calls = overdue.calls(s, patience)
    for begin in range(0, len(calls), BATCH):
        with database.begin() as s:
            for task, argument, experiment_id in calls[begin : begin + BATCH]:
                outbox.add(s, task, argument, experiment_id)


def _send(database: Database) -> None:
    with database.read() as s:
        idle = outbox.idle(s, UNSENT_SECONDS)
    for begin in range(0, len(idle), BATCH):
        database.send(idle[begin : begin + BATCH])
    if not idle:
        database.send(())  # the next experiments may start
