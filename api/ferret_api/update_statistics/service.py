"""Reads what was inside a round's update, and says whether its noise is as low as it should be."""

from __future__ import annotations

import numpy as np
from sqlalchemy.orm import Session

from ferret_core.aggregation import projection_noise
from ferret_core.aggregation.statistics.schema import Agreement, Part, UpdateStatistics, blocks_of, parts_of
from ferret_core.models.shapes import Shapes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.update_statistics import (
    ReconstructionError,
    RoundUpdate,
    UpdateAgreement,
    UpdateNoise,
)
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import RoundState
from ferret_db.repositories import experiments, participants, rounds, update_statistics


def inside(s: Session, experiment_id: str, number: int) -> RoundUpdate:
    """Raises ``round.not_found`` and ``round.uncommitted``."""
    experiment = experiments.get(s, experiment_id)
    state = rounds.summary(s, experiment_id, number).round.state
    if state != RoundState.COMMITTED:
        message = f"is {state}, and has an update once it is committed; ask again then"
        raise FerretError.of_field("round.uncommitted", "round", number, message)
    found = UpdateStatistics.model_validate(update_statistics.get(s, experiment_id, number))
    spec = experiments.spec_of(experiment)
    shapes = {name: tuple(shape) for name, shape in sorted((experiment.shapes or {}).items())}
    parts = parts_of(blocks_of(spec, shapes))
    return RoundUpdate(
        round=number,
        blocks=[part.name for part in parts],
        sizes=[part.size for part in parts],
        step=found.step,
        weights=found.weights,
        noise=found.noise,
        update=found.update,
        K=found.K,
        error=None if found.error is None else ReconstructionError.model_validate(found.error),
        weight_noise=_noise(spec, shapes, parts, found),
        agreement=None if found.agreement is None else _agreement(s, experiment_id, found.agreement),
    )


def _noise(spec: ExperimentSpec, shapes: Shapes, parts: list[Part], found: UpdateStatistics) -> UpdateNoise | None:
    if found.noise is None:
        return None
    names, sizes = tuple(part.name for part in parts), np.array([part.size for part in parts], np.float64)
    told = projection_noise.Noise(names, sizes, np.array(found.noise), np.array(found.weights))
    return UpdateNoise(
        percent=float(f"{100 * told.total:.4g}"),
        advised_percent=100 * projection_noise.ADVISED,
        most_percent=100 * projection_noise.MOST,
        advice=list(projection_noise.ways_out(told, spec, shapes).values())
        if told.total > projection_noise.ADVISED
        else [],
    )


def _agreement(s: Session, experiment_id: str, found: Agreement) -> UpdateAgreement:
    named = participants.display_names(s, experiment_id, found.participants)
    return UpdateAgreement(**found.model_dump(), display_names=named)
