"""Receipts: proof that a committed round holds a participant's contribution, or the reason why it does not."""

from __future__ import annotations

from sqlalchemy.orm import Session

from ferret_core.ledger.receipt import Receipt
from ferret_core.ledger.record import LedgerRecord
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import RoundState
from ferret_core.rounds import sampling
from ferret_db.repositories import contributions, experiments, ledger, participants, rounds


def receipt(s: Session, experiment_id: str, number: int, participant: str) -> Receipt:
    """Returns the receipt of the participant's contribution to the round. Simulated clients have receipts too.

    Raises ``participant.not_found``, ``round.not_found`` for a round that was never opened, ``round.uncommitted``, and
    ``receipt.not_found`` if the record does not hold a contribution, with the fate of what was sent.
    """
    spec = experiments.spec_of(experiments.get(s, experiment_id))
    if participant not in sampling.client_names(spec.participants.simulated):
        participants.named(s, experiment_id, participant)
    state = rounds.summary(s, experiment_id, number).round.state
    if state != RoundState.COMMITTED:
        message = f"is {state}, and has receipts once it is committed; ask again then"
        raise FerretError.of_field("round.uncommitted", "round", number, message)
    record = LedgerRecord.model_validate(ledger.get(s, experiment_id, number).record)
    try:
        return Receipt.of(record, participant)
    except FerretError as error:
        undone = _undone(s, experiment_id, number, participant)
        raise FerretError(error.code, f"{error.detail}{undone}", error.errors) from error


def _undone(s: Session, experiment_id: str, number: int, participant: str) -> str:
    """Shows only the titles of the errors of abandoned attempts, since they can concern other participants."""
    found = contributions.attempts(s, experiment_id, number, participant)
    return "".join(
        f"; attempt {round_.attempt}, which had accepted one, was undone: {(round_.error or {}).get('title', '')}"
        for round_ in found
        if round_.state == RoundState.ABANDONED
    )
