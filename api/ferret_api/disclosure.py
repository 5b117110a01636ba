"""Download protection for rounds with few participants, which could reveal single contributions."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from ferret_api.access import Reader
from ferret_core.protocol.errors import FerretError
from ferret_core.rounds.sampling import client_names
from ferret_db.repositories import experiments, ledger
from ferret_db.tables import Experiment


def require(s: Session, reader: Reader, experiment: Experiment, round: int, least: int) -> None:
    """Raises ``round.too_small`` unless the reader may download the round's update and checkpoint.

    In an experiment with real participants, the round's record must hold the contributions of at least ``least`` of
    them: an update of fewer could reveal single contributions. Simulated clients and refused contributions do not
    count. The experiment's participants may download every round, since they need all updates to follow the model.
    Round 0 is the base model, which holds no contributions.
    """
    if reader.is_participant or not experiment.edge_participants or round == 0:
        return
    count = _real(experiment, ledger.get(s, experiment.id, round).record)
    if count < least:
        raise FerretError(
            "round.too_small",
            f"round {round} holds the contributions of {count} real participants, and FERRET_MIN_PARTICIPANTS = "
            f"{least}: choose a round with more, or ask the operator whether the participants agree to fewer",
        )


def _real(experiment: Experiment, record: dict[str, Any]) -> int:
    """Counts the real participants that contributed to the round's model."""
    simulated = client_names(experiments.spec_of(experiment).participants.simulated)
    contributed = {name for name, *_ in record["contributions"]}
    refused = {name for name, *_ in record["refused"]}
    return len(contributed - refused - {*simulated})
