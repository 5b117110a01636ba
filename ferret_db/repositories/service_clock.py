"""The service as a whole: its clock, the process that keeps it, and the broker's availability.

The service's time advances by the seconds that the keeper counted with a monotonic clock. So a jump of the database's
clock neither passes nor postpones a round's deadline. It does not advance while no worker runs.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from ferret_db import clock
from ferret_db.statements import upsert
from ferret_db.tables import Assignment, ServiceClock, Worker

LONGEST_TICK_SECONDS = 60.0
"""Longest interval between two epoch that counts as service time."""
_ID = 1


def get(s: Session) -> ServiceClock | None:
    """Returns None until a worker has run for the first time."""
    return s.get(ServiceClock, _ID, populate_existing=True)


def begin(s: Session, leader: str) -> bool:
    """Starts the service's time at the database's time. Returns False if it has started."""
    row = upsert(s, ServiceClock).values(
        id=_ID, leader=leader, epoch=1, renewed_at=clock.utcnow(), service_time=clock.utcnow()
    )
    begun = s.execute(row.on_conflict_do_nothing().returning(ServiceClock.id))
    return begun.one_or_none() is not None


def tick(s: Session, last: ServiceClock, leader: str, seconds: float) -> ServiceClock | None:
    """Advances the service's time by ``seconds``, counted by ``leader``. Returns None if another process was faster."""
    return s.scalars(
        update(ServiceClock)
        .where(ServiceClock.id == _ID, ServiceClock.epoch == last.epoch)
        .values(
            leader=leader,
            epoch=last.epoch + 1,
            renewed_at=clock.utcnow(),
            service_time=last.service_time + timedelta(seconds=seconds),
        )
        .returning(ServiceClock),
        execution_options={"populate_existing": True},
    ).one_or_none()


def leave(s: Session, leader: str) -> None:
    """Releases the office when the leader ends, so that the next process need not wait."""
    s.execute(update(ServiceClock).where(ServiceClock.leader == leader).values(leader=None))


def time(s: Session) -> datetime:
    """Returns the service's time at the last tick: no deadline after it has passed."""
    row = get(s)
    return clock.now(s) if row is None else row.service_time


def time_ahead(s: Session, now: datetime | None = None) -> datetime:
    """Returns the service's time at ``now`` of the database's clock. Deadlines start here.

    If the clock has jumped since the last tick, it is too late rather than too early.
    """
    row, now = get(s), now or clock.now(s)
    if row is None:
        return now
    since = (now - row.renewed_at).total_seconds()
    return row.service_time + timedelta(seconds=since if 0 <= since <= LONGEST_TICK_SECONDS else LONGEST_TICK_SECONDS)


def to_database_time(s: Session, moment: datetime) -> datetime:
    """Converts a moment of the service's time to the database's clock, for people."""
    now = clock.now(s)
    return moment + (now - time_ahead(s, now))


def forgive(s: Session, lease_seconds: float) -> None:
    """Renews leases after a clock jump: every lease lasts one more period from now."""
    now = clock.now(s)
    s.execute(
        update(Assignment)
        .where(Assignment.lease_until.is_not(None))
        .values(lease_until=now + timedelta(seconds=lease_seconds))
    )
    s.execute(update(Worker).values(seen_at=now))


def broker_answers(s: Session, *, yes: bool) -> None:
    """Records since when the broker is silent, or that it answers."""
    since = None if yes else clock.utcnow()
    known = ServiceClock.broker_silent_since.is_not(None) if yes else ServiceClock.broker_silent_since.is_(None)
    s.execute(update(ServiceClock).where(ServiceClock.id == _ID, known).values(broker_silent_since=since))


def broker_silent_since(s: Session) -> datetime | None:
    """Returns the start of the broker's silence, or None while it answers."""
    return s.scalars(select(ServiceClock.broker_silent_since)).one_or_none()
