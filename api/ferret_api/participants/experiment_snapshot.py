"""Snapshot of an experiment for its participants, read in one transaction."""

from __future__ import annotations

from typing import NamedTuple

from ferret_api.limits.poll_interval import PollInterval
from ferret_api.participants.poll_etag import PollTag
from ferret_core.protocol.states import ExperimentState
from ferret_db.database import Database
from ferret_db.engine.wait_reason import WaitStatus, gives_work, mark, waiting
from ferret_db.repositories import assignments, experiments, rounds


class ExperimentSnapshot(NamedTuple):
    """A snapshot of an experiment. ``due`` holds the ids of participants that may have work.

    ``due`` is set when the mark changes. Until the next mark, participants only leave it."""

    tag: PollTag
    state: ExperimentState
    waiting: WaitStatus | None
    due: frozenset[str]


def look(
    database: Database, pace: PollInterval, experiment_id: str, before: ExperimentSnapshot | None
) -> ExperimentSnapshot:
    """Reads the stage; raises ``experiment.not_found``. Reuses ``due`` of ``before`` if the mark is the same."""
    with database.read() as s:
        found = rounds.with_latest(s, [experiment_id]).get(experiment_id)
        if found is None:
            raise experiments.unknown(experiment_id)
        experiment, round_ = found
        tag = PollTag(experiment.last_event_seq, mark(experiment, round_))
        if before is not None and before.tag.mark == tag.mark:
            due = before.due
        elif round_ is not None and gives_work(experiment, round_):
            due = assignments.unfinished_participants(s, round_.id)
        else:
            due = frozenset[str]()
        pace.count(s)
        return ExperimentSnapshot(tag, experiment.state, waiting(s, experiment, round_), due)
