"""The rounds of an experiment: their contributions, refused uploads and entries of the ledger."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_core.protocol.ids import Digest
from ferret_core.protocol.resources.base import Bytes, Failure, Json, Page, Resource
from ferret_core.protocol.sanitize import Line, Words
from ferret_core.protocol.states import AssignmentState, ParticipantKind, RoundState


class SumGroup(Resource):
    """A group of a committed round, summed under masks."""

    name: Line
    members: int = Field(description="Number of participants that began the sum")
    survivors: int = Field(description="Number of participants in the sum")
    dropped: list[Line] = Field(description="Display names of the members that are not in the sum")
    refused: Words | None = Field(description="Reason why the sum was left out of the model")


class Round(Resource):
    """One round: it opens, its contributions are frozen, and the model is committed."""

    number: int
    attempt: int = Field(description="1, or more after attempts without a quorum")
    state: RoundState
    base_digest: Digest = Field(description="Digest of the model that the participants start from")
    digest: Digest | None = Field(description="Digest of the model after the round")
    participants: int = Field(description="Number of assignments")
    required_contributions: int | None = Field(
        description="Number of contributions that closes the round early; null: all"
    )
    accepted: int = Field(description="Number of accepted contributions")
    rejected: int = Field(description="Number of rejected contributions")
    bytes_up: int = Field(description="Bytes sent by all participants of the round")
    bytes_down: int = Field(description="Bytes received by all participants of the round")
    groups: list[SumGroup] = Field(description="Its secure sums, once it is committed; empty without secure sums")
    metrics: dict[Line, float]
    opened_at: datetime
    deadline_at: datetime = Field(
        description="Time at which the round closes with its quorum: after `round.deadline_seconds` "
        "or, if unset, after a time derived from the durations of recent contributions"
    )
    frozen_at: datetime | None
    committed_at: datetime | None
    evaluated_at: datetime | None
    error: Failure | None


class RoundPage(Page[Round]):
    """Rounds by number."""


class Contribution(Resource):
    """One participant's work in one round: its assignment, and the contribution or the reason for its absence."""

    participant: Line
    display_name: Line = Field(description="Display name of the participant")
    kind: ParticipantKind
    round: int
    attempt: int = Field(description="Attempt at the round: 1, or more after attempts without a quorum")
    state: AssignmentState
    digest: Digest | None = Field(description="Digest of the accepted contribution")
    size: int | None = Field(description="Bytes sent")
    bytes_down: int | None = Field(description="Bytes received")
    examples: int | None = Field(description="Examples trained on")
    metrics: dict[Line, float] = Field(description="The participant's own metrics, e.g. its training loss")
    seconds: float | None = Field(description="Seconds of local training and projection")
    factor: float | None = Field(description="Scale factor of clipping; null without clipping")
    error: Failure | None
    created_at: datetime


class ContributionPage(Page[Contribution]):
    """Contributions by round and attempt, then by participant."""


class Rejection(Resource):
    """Uploads of one participant in one round that were refused for the same reason. None of them changed the model."""

    participant: Line
    display_name: Line = Field(description="Display name of the participant")
    round: int
    code: Line = Field(description="Stable name of the reason, e.g. `contribution.non_finite`")
    detail: Words = Field(description="Error of the latest upload")
    count: int = Field(description="Number of such uploads")
    created_at: datetime = Field(description="Time of the first refusal")
    updated_at: datetime = Field(description="Time of the latest refusal")


class RejectionPage(Page[Rejection]):
    """Rejections by round, then by participant."""


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


class SumTranscripts(Resource):
    """The transcripts of a round's secure sums."""

    transcripts: list[Json] = Field(
        description="Roster, signed deals, opened secrets and signatures of each group; empty for other rounds"
    )


class LedgerEntry(Resource):
    """One committed round. The base model and all entries rebuild the global model."""

    record: Json = Field(description="The record")
    hash: Digest = Field(description="Link of the hash chain: BLAKE3 of the canonical JSON of the record's header")
    update_size: Bytes = Field(description="Bytes of the update at `/updates/{round}`")


class LedgerPage(Resource):
    """Entries in the order of their rounds. Pass the last round as `after` to get the next."""

    items: list[LedgerEntry]
