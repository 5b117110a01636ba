"""Endpoints for rejected uploads."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter

from ferret_api.access import Viewer
from ferret_api.http.errors import problems
from ferret_api.schemas import PAGE, PREFIX, Cursor, ExperimentId, Limit, OfRound
from ferret_core.protocol.resources.rounds import Rejection, RejectionPage
from ferret_db import tables
from ferret_db.repositories import experiments, participants, rejections

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/rejections", tags=["rounds"])


@router.get("", operation_id="list_rejections", responses=problems("experiment.not_found"))
def list_rejections(
    experiment_id: ExperimentId, caller: Viewer, round: OfRound = None, limit: Limit = PAGE, cursor: Cursor = None
) -> RejectionPage:
    """Lists rejected uploads, by round, then participant. Requires the role viewer.

    Each entry covers one assignment and reason, with the number of uploads."""
    with caller.database.read() as s:
        experiments.get(s, experiment_id)
        page = rejections.list_page(s, experiment_id, limit, cursor, round=round)
        named = participants.display_names(s, experiment_id, {row.participant for row in page.items})
        return RejectionPage(items=[_shown(row, named) for row in page.items], next_cursor=page.next_cursor)


def _shown(row: tables.Rejection, display_names: Mapping[str, str]) -> Rejection:
    """A participant without an entry in ``display_names`` is a simulated client."""
    columns = {name: getattr(row, name) for name in Rejection.model_fields if name != "display_name"}
    return Rejection(display_name=display_names.get(row.participant, row.participant), **columns)
