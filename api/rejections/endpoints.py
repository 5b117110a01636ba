"""Uploads that were refused, and why."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.auth import AdminOnly
from api.context import ContextDep
from api.openapi import problems
from api.pagination import PAGE, Cursor, Limit
from api.rejections.schemas import Rejection, RejectionPage
from api.schemas import MAX_INTEGER, PREFIX, ExperimentId
from ferret_db.repositories import experiments, rejections

router = APIRouter(
    prefix=f"{PREFIX}/experiments/{{experiment_id}}/rejections", tags=["rounds"], dependencies=[AdminOnly]
)


@router.get("", operation_id="list_rejections", responses=problems("experiment.not_found"))
def list_rejections(
    experiment_id: ExperimentId,
    context: ContextDep,
    round: Annotated[int | None, Query(ge=1, le=MAX_INTEGER, description="Only this round")] = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> RejectionPage:
    """One entry per assignment and reason, with how often it was; by round, then participant."""
    with context.database.read() as s:
        experiments.get(s, experiment_id)
        page = rejections.list_page(s, experiment_id, limit, cursor, round=round)
        return RejectionPage(items=[Rejection.model_validate(row) for row in page.items], next_cursor=page.next_cursor)
