"""What is inside a round's update."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Response

from ferret_api.auth import Viewer
from ferret_api.entity_tag import matches
from ferret_api.problems import problems
from ferret_api.schemas import PREFIX, ExperimentId, RoundNumber
from ferret_api.updates import service
from ferret_api.updates.schemas import RoundUpdate
from ferret_core.protocol.digest import digest_json

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/rounds", tags=["rounds"])

IfNoneMatch = Annotated[
    str | None,
    Header(alias="If-None-Match", max_length=500, description="The `ETag` of what is known: 304 where it still holds"),
]


@router.get(
    "/{number}/update",
    operation_id="get_round_update",
    response_model=RoundUpdate,
    responses={
        200: {"headers": {"ETag": {"description": "Of the whole answer", "schema": {"type": "string"}}}},
        304: {"description": "Nothing has changed since the answer with the tag in `If-None-Match`"},
        **problems("experiment.not_found", "round.not_found", "round.uncommitted", "update.not_found"),
    },
)
def get_round_update(
    experiment_id: ExperimentId,
    number: RoundNumber,
    response: Response,
    caller: Viewer,
    if_none_match: IfNoneMatch = None,
) -> RoundUpdate | Response:
    """A committed round's step, noise and weights by block, K_l, and how far participants' updates agree.

    All is computed by the service from what participants send anyway. `update.not_found` is the answer for rounds that
    were committed before the service looked into them.
    """
    with caller.database.read() as s:
        found = service.inside(s, experiment_id, number)
    tag = f'"{digest_json(found.model_dump(mode="json"))}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if if_none_match is not None and matches(if_none_match, tag):
        return Response(status_code=304, headers=headers)
    response.headers.update(headers)
    return found
