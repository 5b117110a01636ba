"""Leader election. One process sweeps and advances the service's time by its own monotonic clock."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from ferret_db.database import Database
from ferret_db.repositories import service_clock
from ferret_db.tables import ServiceClock

logger = logging.getLogger(__name__)

JUMP_SECONDS = 5.0
"""Difference in seconds between the database's clock and ours that counts as a jump."""


class Leader:
    """A process that sweeps when it is the leader.

    It becomes the leader if the previous one has not ticked for ``patience`` seconds by this process's clock. After a
    jump of the database's clock every lease gets ``lease_seconds`` again.
    """

    def __init__(
        self,
        database: Database,
        who: str,
        patience: float,
        lease_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._who = who
        self._patience = patience
        self._lease_seconds = lease_seconds
        self._monotonic = monotonic
        self._epoch: int | None = None
        self._changed = monotonic()

    def turn(self) -> bool:
        """Returns True if this process must sweep now. In that case it has advanced the service's time."""
        with self._database.read() as s:
            last = service_clock.get(s)
        if last is None:
            with self._database.begin(flush=False) as s:
                begun = service_clock.begin(s, self._who)
            if begun:
                self._epoch, self._changed = 1, self._monotonic()
            return begun
        now = self._monotonic()
        if last.epoch != self._epoch:
            self._epoch, self._changed = last.epoch, now
        seconds = now - self._changed
        return (last.leader in {self._who, None} or seconds >= self._patience) and self._tick(last)

    def leave(self) -> None:
        """Resigns when this process ends."""
        with self._database.begin(flush=False) as s:
            service_clock.leave(s, self._who)

    def _tick(self, last: ServiceClock) -> bool:
        with self._database.begin(flush=False) as s:
            now = self._monotonic()  # beginning may have waited for the write lock
            seconds = now - self._changed
            ticked = service_clock.tick(s, last, self._who, seconds)
            if ticked is None:
                return False
            jump = (ticked.renewed_at - last.renewed_at).total_seconds() - seconds
            if last.leader == self._who and abs(jump) > JUMP_SECONDS:
                logger.warning("the database's clock jumped by %.0f s; deadlines and leases stay as long", jump)
                service_clock.forgive(s, self._lease_seconds)
        self._epoch, self._changed = ticked.epoch, now
        return True
