"""Removal of a participant from an experiment: its token is refused, and nobody waits for it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.orm import Session

from ferret_core.protocol.states import RoundState
from ferret_db.engine.rounds import give_up_revoked
from ferret_db.repositories import audit, events, experiments, participants, rounds
from ferret_db.tables import Experiment, Participant


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
