"""Endpoint for the statistics of a round's update."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ferret_api.access import Viewer
from ferret_api.http.entity_tag import TAGGED, IfNoneMatch, tagged
from ferret_api.http.problems import problems
from ferret_api.schemas import PREFIX, ExperimentId, RoundNumber
from ferret_api.update_statistics import service
from ferret_core.protocol.resources.metrics import RoundUpdate

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/rounds", tags=["rounds"])


@router.get(
    "/{number}/update",
    operation_id="get_round_update",
    response_model=RoundUpdate,
    responses={
        **TAGGED,
        **problems("experiment.not_found", "round.not_found", "round.uncommitted"),
    },
)
def get_round_update(
    experiment_id: ExperimentId,
    number: RoundNumber,
    caller: Viewer,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Returns statistics of a committed round's update: step, noise and weights by block, K_l, and the agreement of
    participants' updates.

    The service computes them from the contributions. Requires the role viewer.
    """
    with caller.database.read() as s:
        found = service.get(s, experiment_id, number)
    return tagged(found, if_none_match)
