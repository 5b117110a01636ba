"""Statistics of a round's update, with advice if its noise is too high."""

from __future__ import annotations

import numpy as np
from sqlalchemy.orm import Session

from ferret_core.aggregation import projection_noise
from ferret_core.aggregation.statistics.schema import (
    BlockGroup,
    CosineMatrix,
    UpdateStatistics,
    blocks_of,
    group_blocks,
)
from ferret_core.catalog import ResolvedExperiment
from ferret_core.models.shapes import Shapes
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.metrics import ReconstructionError, RoundUpdate, UpdateAgreement, UpdateNoise
from ferret_core.protocol.states import RoundState
from ferret_db.repositories import experiments, participants, rounds, update_statistics


def get(s: Session, experiment_id: str, number: int) -> RoundUpdate:
    """Returns the statistics; raises ``round.not_found`` and ``round.uncommitted``."""
    experiment = experiments.get(s, experiment_id)
    state = rounds.summary(s, experiment_id, number).round.state
    if state != RoundState.COMMITTED:
        message = f"is {state}, and has an update once it is committed; try again then"
        raise FerretError.of_field("round.uncommitted", "round", number, message)
    found = UpdateStatistics.model_validate(update_statistics.get(s, experiment_id, number))
    resolved = ResolvedExperiment.of(experiments.spec_of(experiment))
    shapes = {name: tuple(shape) for name, shape in sorted((experiment.shapes or {}).items())}
    parts = group_blocks(blocks_of(resolved, shapes))
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
        weight_noise=_noise(resolved, shapes, parts, found),
        agreement=None if found.agreement is None else _agreement(s, experiment_id, found.agreement),
    )


def _noise(
    experiment: ResolvedExperiment, shapes: Shapes, parts: list[BlockGroup], found: UpdateStatistics
) -> UpdateNoise | None:
    if found.noise is None:
        return None
    names, sizes = tuple(part.name for part in parts), np.array([part.size for part in parts], np.float64)
    told = projection_noise.ProjectionNoise(names, sizes, np.array(found.noise), np.array(found.weights))
    return UpdateNoise(
        percent=float(f"{100 * told.total:.4g}"),
        advised_percent=100 * projection_noise.ADVISED,
        most_percent=100 * projection_noise.MOST,
        advice=list(projection_noise.remedies(told, experiment, shapes).values())
        if told.total > projection_noise.ADVISED
        else [],
    )


def _agreement(s: Session, experiment_id: str, found: CosineMatrix) -> UpdateAgreement:
    named = participants.display_names(s, experiment_id, found.participants)
    return UpdateAgreement(**found.model_dump(), display_names=named)
