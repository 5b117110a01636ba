"""Participants over rounds."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_core.protocol.resources.base import Page, Resource
from ferret_core.protocol.resources.contributions import Contribution
from ferret_core.protocol.states import AssignmentState, RoundState


class RoundCells(Resource):
    """One round. All lists but `refused` have the same length, with one entry for each participant of the round."""

    round: int
    attempt: int = Field(
        description=(
            "The last attempt at the round; a participant that is only in an earlier attempt is shown with that one"
        )
    )
    state: RoundState
    participants: list[int] = Field(description="Indices into `participants` of the matrix, ascending")
    states: list[int] = Field(description="Indices into `states` of the matrix")
    sizes: list[int | None] = Field(description="Bytes sent; null if nothing was accepted")
    seconds: list[float | None] = Field(description="Seconds of local training; null if not reported")
    losses: list[float | None] = Field(description="Training loss; null if not reported")
    refused: dict[str, list[int]] = Field(
        description="By reason, indices into `participants` of participants with a refused upload or "
        "rejected work; another upload of theirs may have been accepted"
    )


class ParticipationMatrix(Resource):
    """Result of each participant in each round. Losses and seconds have five digits."""

    participants: list[str] = Field(description="Names of all participants of these rounds, in order")
    display_names: dict[str, str] = Field(description="Display names of real participants; the others are simulated")
    states: list[AssignmentState]
    rounds: list[RoundCells]
    next_after_round: int | None = Field(description="`after_round` of the next page; null on the last")


class RefusedUploads(Resource):
    """Uploads for one assignment that were refused for the same reason."""

    code: str = Field(description="Stable name of the reason, e.g. `contribution.non_finite`")
    detail: str = Field(description="Error of the latest upload")
    count: int = Field(description="Number of such uploads")
    updated_at: datetime = Field(description="Time of the latest refusal")


class ParticipantRound(Contribution):
    """One participant's work in one attempt at a round, with the state of the round and all refused uploads."""

    round_state: RoundState
    opened_at: datetime = Field(description="Time of the round's opening")
    arrived_at: datetime | None = Field(description="Time of the contribution's acceptance")
    refused: list[RefusedUploads] = Field(
        description="Refused uploads, the latest last; none of them changed the model"
    )


class ParticipantRoundPage(Page[ParticipantRound]):
    """One participant's rounds by number and attempt, newest first."""
