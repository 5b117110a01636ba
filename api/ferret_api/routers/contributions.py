"""Endpoints for the contributions of participants to rounds."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter

from ferret_api.access import Viewer
from ferret_api.http.errors import problems
from ferret_api.schemas import PAGE, PREFIX, Cursor, ExperimentId, Limit, OfRound
from ferret_core.protocol.resources.base import Failure
from ferret_core.protocol.resources.rounds import Contribution, ContributionPage
from ferret_db.repositories import contributions, experiments, participants
from ferret_db.repositories.contributions import Report

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/contributions", tags=["rounds"])


@router.get("", operation_id="list_contributions", responses=problems("experiment.not_found"))
def list_contributions(
    experiment_id: ExperimentId, caller: Viewer, round: OfRound = None, limit: Limit = PAGE, cursor: Cursor = None
) -> ContributionPage:
    """Lists assignments with their contributions, by round, attempt, then participant. Requires the role viewer.

    Leased and rejected assignments are included."""
    with caller.database.read() as s:
        experiments.get(s, experiment_id)
        page = contributions.list_page(s, experiment_id, limit, cursor, round=round)
        named = participants.display_names(s, experiment_id, {item.assignment.participant for item in page.items})
        items = [shown(item, named) for item in page.items]
        return ContributionPage(items=items, next_cursor=page.next_cursor)


def shown(report: Report, display_names: Mapping[str, str]) -> Contribution:
    """A participant without an entry in ``display_names`` is a simulated client."""
    assignment, attempt, accepted = report
    return Contribution(
        participant=assignment.participant,
        display_name=display_names.get(assignment.participant, assignment.participant),
        kind=assignment.kind,
        round=assignment.round,
        attempt=attempt,
        state=assignment.state,
        digest=accepted.digest if accepted else None,
        size=accepted.size if accepted else None,
        bytes_down=accepted.bytes_down if accepted else None,
        examples=accepted.examples if accepted else None,
        metrics=accepted.metrics if accepted else {},
        seconds=assignment.seconds,
        factor=accepted.factor if accepted else None,
        error=Failure.model_validate(assignment.error) if assignment.error else None,
        created_at=assignment.created_at,
    )
