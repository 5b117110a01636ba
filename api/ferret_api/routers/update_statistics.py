"""Endpoint for the statistics of a round's update."""

from __future__ import annotations

import numpy as np
from fastapi import APIRouter, Response
from sqlalchemy.orm import Session

from ferret_api.access import Viewer
from ferret_api.http.entity_tag import TAGGED, IfNoneMatch, tagged
from ferret_api.http.errors import problems
from ferret_api.schemas import PREFIX, ExperimentId, RoundNumber
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
from ferret_db.repositories import experiments, participants, rounds

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/rounds", tags=["rounds"])


@router.get(
    "/{number}/update",
    operation_id="get_round_update",
    response_model=RoundUpdate,
    responses={**TAGGED, **problems("experiment.not_found", "round.not_found", "round.uncommitted")},
)
def get_round_update(
    experiment_id: ExperimentId, number: RoundNumber, caller: Viewer, if_none_match: IfNoneMatch = None
) -> Response:
    """Returns statistics of a committed round's update: step, noise and weights by block, K_l, and the agreement of
    participants' updates.

    The service computes them from the contributions. Requires the role viewer.
    """
    with caller.database.read() as s:
        experiment = experiments.get(s, experiment_id)
        state = rounds.summary(s, experiment_id, number).round.state
        if state != RoundState.COMMITTED:
            message = f"is {state}, and has an update once it is committed; try again then"
            raise FerretError.of_field("round.uncommitted", "round", number, message)
        found = UpdateStatistics.model_validate(rounds.update_statistics(s, experiment_id, number))
        resolved = ResolvedExperiment.of(experiments.spec_of(experiment))
        shapes = {name: tuple(shape) for name, shape in sorted((experiment.shapes or {}).items())}
        parts = group_blocks(blocks_of(resolved, shapes))
        shown = RoundUpdate(
            round=number,
            blocks=[part.name for part in parts],
            sizes=[part.size for part in parts],
            step=found.step,
            weights=found.weights,
            noise=found.noise,
            update=found.update,
            K=found.K,
            error=None if found.error is None else ReconstructionError.model_validate(found.error),
            projection_noise=_noise(resolved, shapes, parts, found),
            agreement=None if found.agreement is None else _agreement(s, experiment_id, found.agreement),
        )
    return tagged(shown, if_none_match)


def _noise(
    experiment: ResolvedExperiment, shapes: Shapes, parts: list[BlockGroup], found: UpdateStatistics
) -> UpdateNoise | None:
    if found.noise is None:
        return None
    names, sizes = tuple(part.name for part in parts), np.array([part.size for part in parts], np.float64)
    noise = projection_noise.ProjectionNoise(names, sizes, np.array(found.noise), np.array(found.weights))
    return UpdateNoise(
        percent=float(f"{100 * noise.total:.4g}"),
        advised_percent=100 * projection_noise.ADVISED,
        most_percent=100 * projection_noise.MOST,
        advice=list(projection_noise.remedies(noise, experiment, shapes).values())
        if noise.total > projection_noise.ADVISED
        else [],
    )


def _agreement(s: Session, experiment_id: str, found: CosineMatrix) -> UpdateAgreement:
    named = participants.display_names(s, experiment_id, found.participants)
    return UpdateAgreement(**found.model_dump(), display_names=named)
