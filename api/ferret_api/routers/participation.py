"""Endpoints for participation: all participants by round, and all rounds of one participant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query, Response

from ferret_api.access import Viewer
from ferret_api.http.entity_tag import TAGGED, IfNoneMatch, tagged
from ferret_api.http.errors import problems
from ferret_api.routers import contributions
from ferret_api.schemas import MAX_INTEGER, PAGE, PREFIX, Cursor, ExperimentId, Limit, ParticipantName
from ferret_core.protocol.resources.rounds import (
    ParticipantRound,
    ParticipantRoundPage,
    ParticipationMatrix,
    RefusedUploads,
    RoundCells,
)
from ferret_core.protocol.states import AssignmentState
from ferret_db.repositories import experiments, participants, participation
from ferret_db.repositories.contributions import Report
from ferret_db.repositories.participation import (
    ParticipationCell,
    ParticipationRows,
    RejectionSummary,
    RoundAssignment,
    Stage,
)

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
        found = _grid(grid, participants.display_names(s, experiment_id))
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
        items = [_part(part, named) for part in page.items]
        return ParticipantRoundPage(items=items, next_cursor=page.next_cursor)


Row = TypeVar("Row", ParticipationCell, RejectionSummary)
_STATES = list(AssignmentState)
_DIGITS = 5


def _grid(grid: ParticipationRows, display_names: Mapping[str, str]) -> ParticipationMatrix:
    """A participant without an entry in ``display_names`` is a simulated client."""
    names = sorted({cell.participant for cell in grid.cells})
    places = {name: place for place, name in enumerate(names)}
    cells, refusals = _by_round(grid.cells), _by_round(grid.refusals)
    return ParticipationMatrix(
        participants=names,
        display_names={name: display_names[name] for name in names if name in display_names},
        states=_STATES,
        rounds=[
            _cells(stage, cells.get(stage.number, []), refusals.get(stage.number, []), places) for stage in grid.stages
        ],
        next_after_round=grid.stages[-1].number if grid.more else None,
    )


def _part(part: RoundAssignment, display_names: Mapping[str, str]) -> ParticipantRound:
    """A participant without an entry in ``display_names`` is a simulated client."""
    accepted = part.contribution
    shown = contributions.shown(Report(part.assignment, part.round.attempt, accepted), display_names)
    return ParticipantRound(
        **dict(shown),
        round_state=part.round.state,
        opened_at=part.round.opened_at,
        arrived_at=accepted.created_at if accepted else None,
        refused=[RefusedUploads.model_validate(row) for row in part.refusals],
    )


def _cells(
    stage: Stage, cells: list[ParticipationCell], refusals: list[RejectionSummary], places: Mapping[str, int]
) -> RoundCells:
    last = {places[cell.participant]: cell for cell in cells}
    order = sorted(last)
    shown = [last[place] for place in order]
    return RoundCells(
        round=stage.number,
        attempt=stage.attempt,
        state=stage.state,
        participants=order,
        states=[_STATES.index(cell.state) for cell in shown],
        sizes=[cell.size for cell in shown],
        seconds=[_short(cell.seconds) if cell.seconds else None for cell in shown],
        losses=[_short(cell.loss) for cell in shown],
        refused=_refused(last, refusals, places),
    )


def _refused(
    last: Mapping[int, ParticipationCell], refusals: Iterable[RejectionSummary], places: Mapping[str, int]
) -> dict[str, list[int]]:
    found: dict[str, set[int]] = {}
    for place, cell in last.items():
        if cell.code is not None:
            found.setdefault(cell.code, set()).add(place)
    for refusal in refusals:
        if refusal.participant in places:
            found.setdefault(refusal.code, set()).add(places[refusal.participant])
    return {code: sorted(who) for code, who in sorted(found.items())}


def _by_round(rows: Iterable[Row]) -> dict[int, list[Row]]:
    return {number: list(group) for number, group in groupby(rows, key=attrgetter("round"))}


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")
