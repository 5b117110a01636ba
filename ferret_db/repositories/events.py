"""The append-only record of what happened, which feeds the dashboard."""

from __future__ import annotations

from typing import Any, Literal

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from ferret_db.tables import Event, Experiment

EventType = Literal[
    "experiment.queued",
    "experiment.running",
    "experiment.paused",
    "experiment.resumed",
    "experiment.extended",
    "experiment.completed",
    "experiment.failed",
    "experiment.cancelled",
    "participant.joined",
    "participant.revoked",
    "round.opened",
    "round.frozen",
    "round.committed",
    "round.evaluated",
    "round.undone",
    "round.abandoned",
    "contribution.accepted",
    "contribution.rejected",
    "evaluation.failed",
    "checkpoint.written",
    "checkpoint.rebuilt",
]


def add(
    s: Session, experiment_id: str, type_: EventType, *, round: int | None = None, data: dict[str, Any] | None = None
) -> Event:
    """Appends an event under the next number; taking it locks the experiment, so numbers follow the commits."""
    experiment = s.scalars(
        update(Experiment)
        .where(Experiment.id == experiment_id)
        .values(event_seq=Experiment.event_seq + 1)
        .returning(Experiment),
        execution_options={"synchronize_session": False, "populate_existing": True},
    ).one()
    event = Event(experiment_id=experiment_id, seq=experiment.event_seq, type=type_, round=round, data=data or {})
    s.add(event)
    s.flush()
    return event


def after(s: Session, experiment_id: str, seq: int, limit: int) -> list[Event]:
    """The next ``limit`` events behind number ``seq``; 0 is before the first."""
    return list(
        s.scalars(
            select(Event).where(Event.experiment_id == experiment_id, Event.seq > seq).order_by(Event.seq).limit(limit)
        )
    )
