"""The append-only record of what happened, which feeds the dashboard."""

from __future__ import annotations

from typing import Any, Literal

from sqlalchemy import select, update
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import set_committed_value
from sqlalchemy.orm.util import identity_key

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
    seq = s.scalars(
        update(Experiment)
        .where(Experiment.id == experiment_id)
        .values(event_seq=Experiment.event_seq + 1)
        .returning(Experiment.event_seq),
        execution_options={"synchronize_session": False},
    ).one()
    # Not the whole row, whose specification and shapes would be read with every event, under the experiment's lock.
    if (known := s.identity_map.get(identity_key(Experiment, experiment_id))) is not None:
        set_committed_value(known, "event_seq", seq)
    event = Event(experiment_id=experiment_id, seq=seq, type=type_, round=round, data=data or {})
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
