"""Who takes part, and the leases and failures of those who do."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy.orm import Session

from ferret_api.auth import Identity
from ferret_api.context import Context
from ferret_api.participants.schemas import (
    AssignmentFailure,
    Extended,
    GroupRevocation,
    Lease,
    NextAssignment,
    Participant,
    ParticipantPage,
    Waiting,
)
from ferret_api.participants.tag import Tag
from ferret_api.schemas import Revoked
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.states import ExperimentState
from ferret_db.database import Database
from ferret_db.engine import assignments as leases
from ferret_db.engine import revocation
from ferret_db.engine.waiting import Waiting as Waited
from ferret_db.engine.waiting import gives_work, mark, waiting
from ferret_db.repositories import assignments, experiments, participants, rounds
from ferret_db.tables import Assignment

LOOK_AGAIN_SECONDS = 1.0
"""After a lease that somebody else took at the same moment, with the participant's own token."""


def list_participants(
    database: Database, experiment_id: str, limit: int, cursor: str | None, group: str | None
) -> ParticipantPage:
    with database.read() as s:
        experiments.get(s, experiment_id)
        page = participants.list_page(s, experiment_id, limit, cursor, group=group)
        return ParticipantPage(
            items=[Participant.model_validate(row) for row in page.items], next_cursor=page.next_cursor
        )


def revoke(database: Database, experiment_id: str, name: str, reason: str | None, actor: str) -> Participant:
    with database.begin() as s:
        return Participant.model_validate(revocation.revoke(s, actor, experiment_id, name, reason))


def revoke_group(database: Database, experiment_id: str, wanted: GroupRevocation, actor: str) -> Revoked:
    with database.begin() as s:
        revoked = revocation.revoke_group(s, actor, experiment_id, wanted.group, wanted.reason)
        return Revoked(revoked=revoked)


class Found(NamedTuple):
    """What a participant does next, as the database has it. ``rest``: the seconds for which its work is with an earlier
    lease of its own, or just gone to one; None if there is none."""

    tag: Tag
    state: ExperimentState
    lease: Lease | None
    waiting: Waited | None
    rest: float | None

    def body(self, pause: float) -> NextAssignment:
        """As the participant is told, which is to ask again after ``pause`` seconds."""
        return NextAssignment(
            experiment_state=self.state,
            retry_after_seconds=pause,
            assignment=self.lease,
            waiting=self.waiting and Waiting.model_validate(self.waiting._asdict()),
        )


def ask(context: Context, participant: Identity) -> Found:
    """What the participant does next. Most questions find nothing, so only those that find something write."""
    with context.database.read() as s:
        experiment = experiments.get(s, participant.experiment_id)
        round_ = rounds.latest(s, experiment.id)
        works = gives_work(experiment, round_)
        due = assignments.next_for(s, participant.id) if works else None
        awaited = None if due else waiting(s, experiment, round_)
        leased = assignments.seconds_leased(s, round_.id, participant.id) if round_ and works and not due else None
        context.pace.count(s)
    return Found(
        tag=Tag(experiment.event_seq, mark(experiment, round_)),
        state=experiment.state,
        lease=_lease(context, participant, due.id) if due else None,
        waiting=awaited,
        rest=LOOK_AGAIN_SECONDS if due else leased,
    )


def heartbeat(context: Context, participant: Identity, assignment_id: str, fence: int) -> Extended:
    with context.database.begin() as s:
        owned(s, participant, assignment_id)
        return Extended(lease_until=leases.heartbeat(s, assignment_id, fence, context.settings.lease_seconds))


def report_failure(database: Database, participant: Identity, assignment_id: str, failure: AssignmentFailure) -> None:
    with database.begin() as s:
        owned(s, participant, assignment_id)
        leases.reject(s, assignment_id, failure.fence, FerretError(failure.code, failure.detail))


def owned(s: Session, participant: Identity, assignment_id: str) -> Assignment:
    """The participant's own assignment; another's is as unknown to it as none."""
    found = assignments.get(s, assignment_id)
    if found.participant_id != participant.id:
        raise FerretError.of_field(
            "assignment.not_found", "assignment", assignment_id, "unknown; ask for the next assignment"
        )
    return found


def _lease(context: Context, participant: Identity, assignment_id: str) -> Lease | None:
    seconds = context.settings.lease_seconds
    with context.database.begin() as s:
        participants.seen(s, participant.id)
        leased = leases.lease(s, assignment_id, seconds)
        if leased is None or leased.lease_until is None:
            return None
        return Lease(
            id=leased.id,
            fence=leased.fence,
            lease_seconds=seconds,
            lease_until=leased.lease_until,
            task=RoundTask.model_validate(leased.task),
        )
