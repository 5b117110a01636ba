"""Keeps rounds of few participants from being downloaded: they give away too much of each."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from ferret_api.access import Reader
from ferret_core.protocol.errors import FerretError
from ferret_core.rounds.sampling import client_names
from ferret_db.repositories import experiments, ledger
from ferret_db.tables import Experiment


def require(s: Session, reader: Reader, experiment: Experiment, round: int, least: int) -> None:
    """Raises ``round.too_small`` unless the reader may download what the ``round`` computed: its update or checkpoint.

    In an experiment with real participants, the round's record must hold the contributions of ``least`` of them:
    updates of fewer could show what single ones sent. Neither simulated clients nor refused contributions count. The
    experiment's own participants need every update to follow the model, and the base model holds nothing of theirs.
    """
    if reader.is_participant or not experiment.real_participants or round == 0:
        return
    count = _real(experiment, ledger.get(s, experiment.id, round).record)
    if count < least:
        raise FerretError(
            "round.too_small",
            f"round {round} holds the contributions of {count} real participants, and FERRET_MIN_PARTICIPANTS = "
            f"{least}: choose a round with more, or ask the operator whether the participants agree to fewer",
        )


def _real(experiment: Experiment, record: dict[str, Any]) -> int:
    """How many real participants' contributions went into the round's model."""
    simulated = client_names(experiments.spec_of(experiment).participants.simulated)
    contributed = {name for name, *_ in record["contributions"]}
    refused = {name for name, *_ in record["refused"]}
    return len(contributed - refused - {*simulated})
