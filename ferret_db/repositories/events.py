"""The append-only event log, which feeds the dashboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from sqlalchemy import case, select, update
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
    "participant.approved",
    "participant.refused",
    "participant.revoked",
    "round.opened",
    "round.dealt",
    "round.frozen",
    "round.agreed",
    "round.released",
    "round.committed",
    "round.evaluated",
    "round.rolled_back",
    "round.abandoned",
    "contribution.accepted",
    "contribution.rejected",
    "evaluation.failed",
    "checkpoint.written",
    "checkpoint.rebuilt",
]


class NewEvent(NamedTuple):
    """An event without a number."""

    experiment_id: str
    type: EventType
    round: int | None
    data: dict[str, Any]


def add(
    s: Session, experiment_id: str, type_: EventType, *, round: int | None = None, data: dict[str, Any] | None = None
) -> None:
    """Appends an event under the next number. This locks the experiment, so numbers follow the commits."""
    add_all(s, [NewEvent(experiment_id, type_, round, data or {})])


def add_all(s: Session, new: Sequence[NewEvent]) -> None:
    """Appends several events in order, of one experiment or of experiments that are already locked."""
    following = {id_: seq - count for id_, seq, count in _taken(s, Counter(event.experiment_id for event in new))}
    for experiment_id, type_, round, data in new:
        following[experiment_id] += 1
        s.add(Event(experiment_id=experiment_id, seq=following[experiment_id], type=type_, round=round, data=data))
    s.flush()


def _taken(s: Session, counts: Mapping[str, int]) -> list[tuple[str, int, int]]:
    """Reserves event numbers. Returns each experiment with its last reserved number and their count."""
    more = case(counts, value=Experiment.id) if len(counts) > 1 else next(iter(counts.values()))
    taken = s.execute(
        update(Experiment)
        .where(Experiment.id.in_(counts))
        .values(last_event_seq=Experiment.last_event_seq + more)
        .returning(Experiment.id, Experiment.last_event_seq)
    ).all()
    for experiment_id, seq in taken:
        # Not the whole row: specification and shapes would be read with every event, under the experiment's lock.
        if (known := s.identity_map.get(identity_key(Experiment, experiment_id))) is not None:
            set_committed_value(known, "last_event_seq", seq)
    return [(experiment_id, seq, counts[experiment_id]) for experiment_id, seq in taken]


def after(s: Session, experiment_id: str, seq: int, limit: int) -> list[Event]:
    """Returns the next ``limit`` events after number ``seq``; 0 is before the first."""
    return list(
        s.scalars(
            select(Event).where(Event.experiment_id == experiment_id, Event.seq > seq).order_by(Event.seq).limit(limit)
        )
    )
