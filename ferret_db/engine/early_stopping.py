"""Early stopping of an experiment, computed from its metrics on every call."""

from __future__ import annotations

from sqlalchemy.orm import Session

from ferret_core.rounds import early_stopping
from ferret_core.rounds.early_stopping import BestRound, Decline, EarlyStop
from ferret_db.repositories import metrics
from ferret_db.repositories.experiments import spec_of
from ferret_db.tables import Experiment


def judged(experiment: Experiment) -> bool:
    """Returns True if the experiment may stop early: then a round's evaluation decides about the next round."""
    return spec_of(experiment).stopping.patience is not None


def stop(s: Session, experiment: Experiment) -> EarlyStop | None:
    """Returns the reason that no further round opens although rounds are left, or None."""
    if not judged(experiment) or experiment.round >= experiment.rounds:
        return None
    return early_stopping.stop(spec_of(experiment).stopping, _values(s, experiment), experiment.patience_from_round)


def decline(s: Session, experiment: Experiment) -> Decline | None:
    """Returns how a finished experiment's result is worse than it need be, or None."""
    if not experiment.state.finished:
        return None
    return early_stopping.decline(spec_of(experiment).stopping, _values(s, experiment))


def ranked(s: Session, experiment: Experiment) -> list[BestRound]:
    """Returns the evaluated rounds, best first."""
    return early_stopping.ranked(spec_of(experiment).stopping, _values(s, experiment))


def _values(s: Session, experiment: Experiment) -> dict[int, float]:
    return metrics.values(s, experiment.id, spec_of(experiment).stopping.metric)
