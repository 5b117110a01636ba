"""Endpoints for participation: all participants by round, and all rounds of one participant."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from ferret_api.access import Viewer
from ferret_api.http.entity_tag import TAGGED, IfNoneMatch, tagged
from ferret_api.http.pagination import PAGE, Cursor, Limit
from ferret_api.http.problems import problems
from ferret_api.participation_matrix import resource
from ferret_api.schemas import MAX_INTEGER, PREFIX, ExperimentId, ParticipantName
from ferret_core.protocol.resources.rounds import ParticipantRoundPage, ParticipationMatrix
from ferret_db.repositories import experiments, participants, participation

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}", tags=["rounds"])

AfterRound = Annotated[int, Query(ge=0, le=MAX_INTEGER, description="Only rounds after this one; 0 for all")]


@router.get(
    "/participation",
    operation_id="get_participation",
    response_model=ParticipationMatrix,
    responses={**TAGGED, **problems("experiment.not_found")},
)
def get_participation(
    experiment_id: ExperimentId,
    caller: Viewer,
    after_round: AfterRound = 0,
    limit: Limit = 200,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Returns the outcome of each participant in each round, as columns of numbers. Every attempt at a round counts.

    The response holds at most `limit` rounds, and fewer if they have very many participants. For the next rounds, pass
    `next_after_round` as `after_round`. Committed rounds no longer change: to follow an experiment, request the rounds
    after the last committed one. Requires the role viewer.
    """
    with caller.database.read() as s:
        experiments.get(s, experiment_id)
        grid = participation.grid(s, experiment_id, after_round, limit)
        found = resource.of_grid(grid, participants.display_names(s, experiment_id))
    return tagged(found, if_none_match)


@router.get(
    "/participants/{participant}/rounds",
    operation_id="list_rounds_of_participant",
    responses=problems("experiment.not_found", "participant.not_found"),
)
def list_rounds_of_participant(
    experiment_id: ExperimentId,
    participant: ParticipantName,
    caller: Viewer,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> ParticipantRoundPage:
    """Lists all assignments of one participant, real or simulated, with their results, newest first.

    Requires the role viewer."""
    with caller.database.read() as s:
        experiments.get(s, experiment_id)
        page = participation.timeline(s, experiment_id, participant, limit, cursor)
        if not page.items and cursor is None:
            participants.named(s, experiment_id, participant)
        named = participants.display_names(s, experiment_id, [participant])
        items = [resource.of_part(part, named) for part in page.items]
        return ParticipantRoundPage(items=items, next_cursor=page.next_cursor)
