"""Participants, their assignments and their uploads."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_core.protocol.ids import AssignmentId, Digest, ParticipantId, ParticipantName, PublicKey
from ferret_core.protocol.limits import MAX_LEASE_SECONDS, MAX_PART_BYTES
from ferret_core.protocol.resources.base import Bytes, Count, Page, Resource, RoundNumber
from ferret_core.protocol.sanitize import Line, Words
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.states import ExperimentState, ParticipantState, WaitReason


class Participant(Resource):
    """A real participant of an experiment."""

    id: ParticipantId
    name: ParticipantName = Field(description="Name in paths and the ledger")
    display_name: Line = Field(description="Display name, in any script")
    group: Line | None = Field(description="Group of the code that it joined with")
    public_key: PublicKey | None = Field(description="Ed25519 key of its signatures, in hexadecimal")
    state: ParticipantState = Field(description="pending until an administrator approves or refuses it")
    created_at: datetime = Field(description="Time of enrolment")
    seen_at: datetime = Field(description="Time of its last request for work, to within two minutes")
    revoked_at: datetime | None = Field(description="Time since which its token is refused")
    revocation_reason: Words | None = Field(description="The administrator's reason for revoking or refusing it")


class ParticipantPage(Page[Participant]):
    """Participants by name."""


class Lease(Resource):
    """An assignment that the participant holds until ``lease_until``. Every heartbeat extends it."""

    id: AssignmentId
    fence: int = Field(ge=0, lt=2**31, description="Fencing number, to be repeated with the results")
    lease_seconds: float = Field(gt=0, le=MAX_LEASE_SECONDS)
    lease_until: datetime
    task: RoundTask
    part_bytes: int | None = Field(
        default=None,
        ge=1 << 10,
        le=MAX_PART_BYTES,
        exclude_if=lambda value: value is None,
        description="A contribution with more bytes is sent in parts of this size",
    )


class Waiting(Resource):
    """Reason for a missing assignment."""

    awaited: WaitReason = Field(
        description="Approval, other participants, the next round, contributions, the model, a resumption, or the end"
    )
    round: RoundNumber = Field(description="The round concerned; 0 before round 1")
    done: Count = Field(description="Number that have joined or contributed; 0 if nothing is counted")
    total: Count = Field(description="Number required")


class NextAssignment(Resource):
    """Next action of the participant."""

    experiment_state: ExperimentState
    retry_after_seconds: float = Field(
        ge=0, allow_inf_nan=False, description="Time of the next request; also, in whole seconds, in `Retry-After`"
    )
    assignment: Lease | None
    waiting: Waiting | None = Field(
        description="Reason for a missing assignment; null with an assignment, and after the experiment has ended"
    )


class LeaseExtension(Resource):
    """The lease after a heartbeat."""

    lease_until: datetime


class ContributionReceipt(Resource):
    """An accepted contribution. It counts once its round is committed."""

    digest: Digest
    size: int
    round: int
    accepted: bool


class UploadProgress(Resource):
    """Progress of a contribution's upload."""

    offset: Bytes = Field(description="Bytes that the server has stored; the next part begins there")
