"""What an administrator and a participant exchange with the API."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from ferret_api.schemas import MAX_INTEGER, Command, GroupName, Page, Resource
from ferret_core.protocol.errors import PROBLEMS
from ferret_core.protocol.sanitize import Words
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.states import Awaited, ExperimentState, ParticipantState

Fence = Annotated[int, Field(ge=0, le=MAX_INTEGER, description="The `fence` that came with the lease")]


def _known(code: str) -> str:
    if code not in PROBLEMS:
        raise ValueError("is not a known problem code")
    return code


class Participant(Resource):
    """A real participant of an experiment."""

    id: str
    name: str = Field(description="What paths and the ledger call it")
    display_name: str = Field(description="What people call it, in any script")
    group: str | None = Field(description="Group of the code that it joined with")
    public_key: str | None = Field(description="Ed25519 key that it signs by, in hexadecimal")
    state: ParticipantState = Field(description="pending until an administrator approves or refuses it")
    created_at: datetime = Field(description="When it enrolled")
    seen_at: datetime = Field(description="When it last asked for work, within two minutes, or took it")
    revoked_at: datetime | None = Field(description="Since when its token is refused")
    revoked_for: str | None = Field(description="Why it was revoked or refused, as the administrator said")


class ParticipantPage(Page[Participant]):
    """Participants by name."""


class Revocation(Command, json_schema_extra={"examples": [{"reason": "the contract has ended"}]}):
    """Why a participant is removed. The participant is told."""

    reason: Words | None = Field(default=None, min_length=1, max_length=500)


class Refusal(Command, json_schema_extra={"examples": [{"reason": "not the site that was invited"}]}):
    """Why a participant is not approved. The participant is told."""

    reason: Words | None = Field(default=None, min_length=1, max_length=500)


class GroupRevocation(Revocation, json_schema_extra={"examples": [{"group": "north", "reason": "the pilot is over"}]}):
    """The participants of which group are removed, and why. They are told."""

    group: GroupName


class Lease(Resource):
    """An assignment that the participant holds until ``lease_until``; every heartbeat extends it."""

    id: str
    fence: int
    lease_seconds: float
    lease_until: datetime
    task: RoundTask
    part_bytes: int | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="Where contributions may have more bytes: those are sent in parts of as many",
    )


class Waiting(Resource):
    """What a participant without an assignment waits for."""

    awaited: Awaited = Field(
        description="Approval, others to join, the next round, contributions, the model, a resumption, or the end"
    )
    round: int = Field(description="The round it is about; 0 before round 1")
    done: int = Field(description="How many have joined or contributed; 0 where nothing is counted")
    total: int = Field(description="Of how many")


class NextAssignment(Resource):
    """What the participant does next."""

    experiment_state: ExperimentState
    retry_after_seconds: float = Field(description="When to ask again; also, in whole seconds, `Retry-After`")
    assignment: Lease | None
    waiting: Waiting | None = Field(
        description="Why there is no assignment; null where there is one, and after the end"
    )


class Heartbeat(Command, json_schema_extra={"examples": [{"fence": 1}]}):
    """The participant is still at work."""

    fence: Fence


class Extended(Resource):
    """The lease after a heartbeat."""

    lease_until: datetime


class Accepted(Resource):
    """An accepted contribution, which counts once its round is committed."""

    digest: str
    size: int
    round: int
    accepted: bool


class Arrived(Resource):
    """How much of a contribution has arrived."""

    offset: int = Field(description="Bytes that are on the server's disk; the next part begins there")


class AssignmentFailure(
    Command,
    json_schema_extra={
        "examples": [{"fence": 1, "code": "dataset.invalid", "detail": "line 7 has no field instruction"}]
    },
):
    """Why the participant cannot do its assignment."""

    fence: Fence
    code: Annotated[str, AfterValidator(_known)] = Field(description="Code of the problem, e.g. `dataset.invalid`")
    detail: Words = Field(min_length=1, max_length=2000)
