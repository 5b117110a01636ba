"""Approval of participants where the experiment requires it. Approval lets them take part; a refusal is final."""

from __future__ import annotations

from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import ParticipantState
from ferret_core.protocol.task_names import TaskName
from ferret_db.repositories import audit, events, experiments, outbox, participants
from ferret_db.tables import Participant


def approve(s: Session, actor: str, experiment_id: str, name: str) -> Participant:
    """Approves and returns the participant. Approving it twice changes nothing.

    Raises ``experiment.not_found``, ``participant.not_found``, and ``participant.conflict`` if it was refused or
    revoked.
    """
    experiments.lock(s, experiment_id)
    participant = participants.named(s, experiment_id, name)
    match participant.state:
        case ParticipantState.ACTIVE:
            return participant
        case ParticipantState.PENDING:
            participants.approve(s, participant)
        case _:
            raise _conflict(participant, "it can join again with a new code, under another name")
    experiments.change(s, experiment_id)
    events.add(s, experiment_id, "participant.approved", data={"participant": name})
    outbox.add(s, TaskName.COORDINATE, experiment_id)
    audit.record(s, actor, "participant.approved", participant.id, experiment=experiment_id, name=name)
    return participants.named(s, experiment_id, name)


def refuse(s: Session, actor: str, experiment_id: str, name: str, reason: str | None = None) -> Participant:
    """Refuses the participant and invalidates its token. Refusing it twice keeps the first time and reason.

    Raises ``experiment.not_found``, ``participant.not_found``, and ``participant.conflict`` if it takes part or was
    revoked.
    """
    experiments.lock(s, experiment_id)
    participant = participants.named(s, experiment_id, name)
    match participant.state:
        case ParticipantState.REFUSED:
            return participant
        case ParticipantState.PENDING:
            participants.revoke(s, participant, reason)
        case _:
            raise _conflict(participant, "ferret experiment revoke removes a participant")
    experiments.change(s, experiment_id)
    events.add(s, experiment_id, "participant.refused", data={"participant": name})
    audit.record(s, actor, "participant.refused", participant.id, experiment=experiment_id, name=name, reason=reason)
    return participants.named(s, experiment_id, name)


def _conflict(participant: Participant, next_step: str) -> FerretError:
    message = f"is {participant.state.value} and waits for no approval; {next_step}"
    return FerretError.of_field("participant.conflict", "name", participant.name, message)
