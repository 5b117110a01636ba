"""Endpoints for the contributions of participants to rounds."""

from __future__ import annotations

from fastapi import APIRouter

from ferret_api.access import Viewer
from ferret_api.contributions import resource
from ferret_api.http.pagination import PAGE, Cursor, Limit
from ferret_api.http.problems import problems
from ferret_api.schemas import PREFIX, ExperimentId, OfRound
from ferret_core.protocol.resources.rounds import ContributionPage
from ferret_db.repositories import contributions, experiments, participants

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/contributions", tags=["rounds"])


@router.get("", operation_id="list_contributions", responses=problems("experiment.not_found"))
def list_contributions(
    experiment_id: ExperimentId,
    caller: Viewer,
    round: OfRound = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> ContributionPage:
    """Lists assignments with their contributions, by round, attempt, then participant. Requires the role viewer.

    Leased and rejected assignments are included."""
    with caller.database.read() as s:
        experiments.get(s, experiment_id)
        page = contributions.list_page(s, experiment_id, limit, cursor, round=round)
        named = participants.display_names(s, experiment_id, {item.assignment.participant for item in page.items})
        items = [resource.of(item, named) for item in page.items]
        return ContributionPage(items=items, next_cursor=page.next_cursor)
