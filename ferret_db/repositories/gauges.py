"""How much of everything there is, for Prometheus."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy.orm import Session

from ferret_core.protocol.states import AssignmentState, ExperimentState, RoundState
from ferret_db.repositories import assignments, experiments, outbox, rounds


class Gauges(NamedTuple):
    """Counts by state, every state named, and the messages that wait in the outbox."""

    experiments: dict[ExperimentState, int]
    rounds: dict[RoundState, int]
    assignments: dict[AssignmentState, int]
    outbox_unsent: int


def read(s: Session) -> Gauges:
    return Gauges(
        dict.fromkeys(ExperimentState, 0) | experiments.count_by_state(s),
        dict.fromkeys(RoundState, 0) | rounds.count_by_state(s),
        dict.fromkeys(AssignmentState, 0) | assignments.count_by_state(s),
        outbox.unsent(s),
    )
