"""Membership of participants: approved or refused where the experiment requires approval, and revoked.

A refusal is final. The token of a revoked participant is refused, and nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import ParticipantState, RoundState
from ferret_core.protocol.task_names import TaskName
from ferret_db.engine.rounds import give_up_revoked
from ferret_db.repositories import audit, events, experiments, outbox, participants, rounds
from ferret_db.tables import Experiment, Participant


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
            raise _conflict(participant, "ferret participant revoke removes a participant")
    experiments.change(s, experiment_id)
    events.add(s, experiment_id, "participant.refused", data={"participant": name})
    audit.record(s, actor, "participant.refused", participant.id, experiment=experiment_id, name=name, reason=reason)
    return participants.named(s, experiment_id, name)


def _conflict(participant: Participant, next_step: str) -> FerretError:
    message = f"is {participant.state.value} and waits for no approval; {next_step}"
    return FerretError.of_field("participant.conflict", "name", participant.name, message)


def revoke(s: Session, actor: str, experiment_id: str, name: str, reason: str | None = None) -> Participant:
    """Revokes the participant, by ``actor``, and returns it. Repeating it keeps the first time and reason.

    Its accepted contributions stay in their rounds and in the ledger. Its unfinished work in the open round is given
    up. Its name stays taken. Raises ``experiment.not_found`` and ``participant.not_found``.
    """
    experiment = experiments.lock(s, experiment_id)
    _revoke(s, actor, experiment, [participants.named(s, experiment_id, name)], reason)
    return participants.named(s, experiment_id, name)


def revoke_group(s: Session, actor: str, experiment_id: str, group: str, reason: str | None = None) -> int:
    """Revokes each participant of the group as :func:`revoke` does. Returns how many this call revoked.

    Raises ``experiment.not_found`` and ``participant.not_found``.
    """
    experiment = experiments.lock(s, experiment_id)
    return _revoke(s, actor, experiment, participants.in_group(s, experiment_id, group), reason)


def _revoke(s: Session, actor: str, experiment: Experiment, members: Sequence[Participant], reason: str | None) -> int:
    """Revokes members of the locked experiment. Returns how many had not been revoked before."""
    revoked = [member for member in members if participants.revoke(s, member, reason)]
    for member in revoked:
        events.add(s, experiment.id, "participant.revoked", data={"participant": member.name})
    if revoked:
        for round_ in rounds.in_states(s, experiment.id, RoundState.OPEN):
            give_up_revoked(s, experiment, round_)
    for member in revoked:
        about = {"experiment": experiment.id, "name": member.name, "reason": reason}
        audit.record(s, actor, "participant.revoked", member.id, **about)
    return len(revoked)
