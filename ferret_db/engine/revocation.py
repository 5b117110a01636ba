"""A participant is removed from an experiment: its token is refused, and nobody waits for it any more."""

from __future__ import annotations

from sqlalchemy.orm import Session

from ferret_core.protocol.states import RoundState
from ferret_db.engine.rounds import give_up_revoked
from ferret_db.repositories import audit, events, experiments, participants, rounds
from ferret_db.tables import Participant


def revoke(s: Session, actor: str, experiment_id: str, name: str, reason: str | None = None) -> Participant:
    """The participant, revoked by ``actor``; doing it twice keeps the first time and reason.

    What was accepted from it stays in its rounds and in the ledger; what it has yet to do in the open round is given
    up. Its name stays taken. Raises ``experiment.not_found`` and ``participant.not_found``.
    """
    experiment = experiments.lock(s, experiment_id)
    participant = participants.named(s, experiment_id, name)
    if not participants.revoke(s, participant, reason):
        return participant
    events.add(s, experiment_id, "participant.revoked", data={"participant": name})
    for round_ in rounds.in_states(s, experiment_id, RoundState.OPEN):
        give_up_revoked(s, experiment, round_)
    audit.record(s, actor, "participant.revoked", participant.id, experiment=experiment_id, name=name, reason=reason)
    return participants.named(s, experiment_id, name)
