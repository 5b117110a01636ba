"""Alerts for stalled experiments. ``stalls`` decides which are."""

from __future__ import annotations

from sqlalchemy.orm import Session

from ferret_core.protocol.resources.alerts import AlertEvent
from ferret_db import clock
from ferret_db.database import Database
from ferret_db.engine import stalls
from ferret_db.engine.alerts import announce
from ferret_db.repositories import alerts, experiments
from ferret_db.tables import Experiment


def tell(database: Database, seconds: float) -> None:
    """Reports every experiment that has stalled for ``seconds``, once until it moves again."""
    with database.read() as s:
        if not alerts.wanted(s, AlertEvent.STALLED):
            return
        changed = [row.id for row in experiments.unfinished(s) if _is_news(s, row, seconds)]
    for experiment_id in changed:
        with database.begin() as s:
            row = experiments.lock(s, experiment_id)
            if not _is_news(s, row, seconds):
                continue
            stall = stalls.stall(s, row)
            experiments.change(s, experiment_id, stall_told_at=clock.utcnow() if stall else None)
            if stall:
                announce(s, row, AlertEvent.STALLED, stall.detail)


def _is_news(s: Session, experiment: Experiment, seconds: float) -> bool:
    """Returns True if it has stalled and no alert was sent, or moves again after one was sent."""
    stall = stalls.stall(s, experiment)
    if stall is None:
        return experiment.stall_told_at is not None
    return experiment.stall_told_at is None and (clock.now(s) - stall.since).total_seconds() >= seconds
