"""Participants over rounds as the API shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import TypeVar

from ferret_api.contributions import resource
from ferret_core.protocol.resources.rounds import ParticipantRound, ParticipationMatrix, RefusedUploads, RoundCells
from ferret_core.protocol.states import AssignmentState
from ferret_db.repositories.contributions import Report
from ferret_db.repositories.participation import (
    ParticipationCell,
    ParticipationRows,
    RejectionSummary,
    RoundAssignment,
    Stage,
)

Row = TypeVar("Row", ParticipationCell, RejectionSummary)
_STATES = list(AssignmentState)
_DIGITS = 5


def of_grid(grid: ParticipationRows, display_names: Mapping[str, str]) -> ParticipationMatrix:
    """Whoever is not among the real participants' ``display_names`` is simulated."""
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


def of_part(part: RoundAssignment, display_names: Mapping[str, str]) -> ParticipantRound:
    """Whoever is not among the real participants' ``display_names`` is simulated."""
    accepted = part.contribution
    shown = resource.of(Report(part.assignment, part.round.attempt, accepted), display_names)
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
