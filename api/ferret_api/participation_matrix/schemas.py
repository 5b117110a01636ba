"""Participants over rounds as the API shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import TypeVar

from pydantic import Field

from ferret_api.contributions.schemas import Contribution
from ferret_api.schemas import Page, Resource
from ferret_core.protocol.states import AssignmentState, RoundState
from ferret_db.repositories.contributions import Report
from ferret_db.repositories.participation import Cell, Grid, Part, Refusal, Stage

Row = TypeVar("Row", Cell, Refusal)
_STATES = list(AssignmentState)
_DIGITS = 5


class Parts(Resource):
    """One round: all lists but `refused` are equally long, with one entry for each participant that was asked."""

    round: int
    attempt: int = Field(description="The last attempt at the round; earlier ones count for who is not in it")
    state: RoundState
    participants: list[int] = Field(description="Places in `participants` of the whole, ascending")
    states: list[int] = Field(description="Places in `states` of the whole")
    sizes: list[int | None] = Field(description="Bytes sent; null where nothing was accepted")
    seconds: list[float | None] = Field(description="Seconds of local training; null where they are not told")
    losses: list[float | None] = Field(description="Train loss; null where it is not told")
    refused: dict[str, list[int]] = Field(
        description="By reason, places in `participants` of those of whom an upload was refused, or work rejected, for "
        "it; another upload may have been accepted"
    )


class Participation(Resource):
    """What became of each participant in each round. Losses and seconds have five digits."""

    participants: list[str] = Field(description="Names of all that are in these rounds, in order")
    display_names: dict[str, str] = Field(description="What people call the real ones; all others are simulated")
    states: list[AssignmentState]
    rounds: list[Parts]
    next_after_round: int | None = Field(description="`after_round` of the next page; null on the last")

    @classmethod
    def of(cls, grid: Grid, display_names: Mapping[str, str]) -> Participation:
        """Whoever is not among the real participants' ``display_names`` is simulated."""
        names = sorted({cell.participant for cell in grid.cells})
        places = {name: place for place, name in enumerate(names)}
        cells, refusals = _by_round(grid.cells), _by_round(grid.refusals)
        return cls(
            participants=names,
            display_names={name: display_names[name] for name in names if name in display_names},
            states=_STATES,
            rounds=[
                _parts(stage, cells.get(stage.number, []), refusals.get(stage.number, []), places)
                for stage in grid.stages
            ],
            next_after_round=grid.stages[-1].number if grid.more else None,
        )


class Refused(Resource):
    """Uploads for one assignment that were refused for the same reason."""

    code: str = Field(description="Stable name of the reason, e.g. `contribution.non_finite`")
    detail: str = Field(description="What was wrong with the latest upload")
    count: int = Field(description="Number of such uploads")
    updated_at: datetime = Field(description="When the latest was refused")


class PartOfParticipant(Contribution):
    """One participant's part in one attempt at a round, with the round's own state and all refused uploads."""

    round_state: RoundState
    opened_at: datetime = Field(description="When the round opened")
    arrived_at: datetime | None = Field(description="When the contribution was accepted")
    refused: list[Refused] = Field(description="Uploads that were refused, the latest last; none changed the model")

    @classmethod
    def of_part(cls, part: Part, display_names: Mapping[str, str]) -> PartOfParticipant:
        """As :meth:`Contribution.of`."""
        accepted = part.contribution
        shown = Contribution.of(Report(part.assignment, part.round.attempt, accepted), display_names)
        return cls(
            **dict(shown),
            round_state=part.round.state,
            opened_at=part.round.opened_at,
            arrived_at=accepted.created_at if accepted else None,
            refused=[Refused.model_validate(row) for row in part.refusals],
        )


class PartPage(Page[PartOfParticipant]):
    """Parts by round and attempt, the newest first."""


def _parts(stage: Stage, cells: list[Cell], refusals: list[Refusal], places: Mapping[str, int]) -> Parts:
    last = {places[cell.participant]: cell for cell in cells}
    order = sorted(last)
    shown = [last[place] for place in order]
    return Parts(
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


def _refused(last: Mapping[int, Cell], refusals: Iterable[Refusal], places: Mapping[str, int]) -> dict[str, list[int]]:
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
