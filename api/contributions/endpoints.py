"""What each participant did in each round."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.auth import AdminOnly
from api.context import ContextDep
from api.contributions.schemas import Contribution, ContributionPage
from api.openapi import problems
from api.pagination import PAGE, Cursor, Limit
from api.schemas import MAX_INTEGER, PREFIX, ExperimentId
from ferret_db.repositories import contributions, experiments

router = APIRouter(
    prefix=f"{PREFIX}/experiments/{{experiment_id}}/contributions", tags=["rounds"], dependencies=[AdminOnly]
)


@router.get("", operation_id="list_contributions", responses=problems("experiment.not_found"))
def list_contributions(
    experiment_id: ExperimentId,
    context: ContextDep,
    round: Annotated[int | None, Query(ge=1, le=MAX_INTEGER, description="Only this round")] = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> ContributionPage:
    """One entry per assignment, so that leased and rejected ones show too; by round, attempt, then participant."""
    with context.database.read() as s:
        experiments.get(s, experiment_id)
        page = contributions.list_page(s, experiment_id, limit, cursor, round=round)
        return ContributionPage(items=[Contribution.of(item) for item in page.items], next_cursor=page.next_cursor)
