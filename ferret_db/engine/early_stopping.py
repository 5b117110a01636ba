"""The end of an experiment before its last round, worked out from the metrics whenever it is asked."""

from __future__ import annotations

from sqlalchemy.orm import Session

from ferret_core.rounds import early_stopping
from ferret_core.rounds.early_stopping import Best, Stop
from ferret_db.repositories import metrics
from ferret_db.repositories.experiments import spec_of
from ferret_db.tables import Experiment


def judged(experiment: Experiment) -> bool:
    """Whether the experiment may end before its last round: then the evaluation of a round decides about the next."""
    return spec_of(experiment).stopping.patience is not None


def stop(s: Session, experiment: Experiment) -> Stop | None:
    """Why no further round opens although there would be one."""
    if not judged(experiment) or experiment.round >= experiment.rounds:
        return None
    return early_stopping.stop(spec_of(experiment).stopping, _values(s, experiment), experiment.patience_since)


def ranked(s: Session, experiment: Experiment) -> list[Best]:
    """The evaluated rounds from the best to the worst."""
    return early_stopping.ranked(spec_of(experiment).stopping, _values(s, experiment))


def _values(s: Session, experiment: Experiment) -> dict[int, float]:
    return metrics.values(s, experiment.id, spec_of(experiment).stopping.metric)
