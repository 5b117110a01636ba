"""Participants, their enrolment, their assignments and their uploads.

An enrolment code is a part that identifies the server, then the secret, as ``4f1c.SECRET``. The first part helps people
who present a code to the wrong server, and grants nothing. It is only the beginning of the server's ``instance``: the
admin token follows from the instance, so a code must reveal almost nothing of it.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from ferret_core.protocol.display_name import DisplayName
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import (
    AssignmentId,
    Digest,
    EnrolmentId,
    ExperimentId,
    ParticipantId,
    ParticipantName,
    PublicKey,
    TokenText,
)
from ferret_core.protocol.limits import MAX_LEASE_SECONDS, MAX_PART_BYTES
from ferret_core.protocol.resources.base import Bytes, Count, Json, Page, Resource, RoundNumber
from ferret_core.protocol.resources.experiments import SpecificationJson
from ferret_core.protocol.sanitize import Line, Words
from ferret_core.protocol.spec import RoundTask
from ferret_core.protocol.states import ExperimentState, ParticipantState, SumStage, WaitReason

Octets = Annotated[str, Field(pattern="^([0-9a-f]{2})*$", max_length=10_000)]
DIGITS = 4
_NAMING = re.compile(rf"(?P<issuer>[0-9a-f]{{{DIGITS}}})\.(?P<secret>.+)")  # a secret is base64url, without a dot


class Participant(Resource):
    """A real participant of an experiment."""

    id: ParticipantId
    name: ParticipantName = Field(description="Name in paths and the ledger")
    display_name: Line = Field(description="Display name, in any script")
    group: Line | None = Field(description="Group of the code that it joined with")
    public_key: PublicKey | None = Field(description="Ed25519 key of its signatures, in hexadecimal")
    state: ParticipantState = Field(description="pending until a researcher approves or refuses it")
    created_at: datetime = Field(description="Time of enrolment")
    seen_at: datetime = Field(description="Time of its last request for work, to within two minutes")
    revoked_at: datetime | None = Field(description="Time since which its token is refused")
    revocation_reason: Words | None = Field(description="The administrator's reason for revoking or refusing it")


class ParticipantPage(Page[Participant]):
    """Participants by name."""


class SumTask(Resource):
    """The message that a secure sum needs of the participant: its deal, then its masked vector."""

    stage: Literal[SumStage.DEAL, SumStage.MASK]
    context: Digest = Field(description="Digest of the roster")
    roster: Json | None = Field(description="The group's roster, with the stage deal")


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
    sum: SumTask | None = Field(
        default=None, exclude_if=lambda value: value is None, description="The secure sum, if the round is one"
    )


class Waiting(Resource):
    """Reason for a missing assignment."""

    awaited: WaitReason = Field(
        description="Approval, other participants, the next round, contributions, the model, a resumption, or the end"
    )
    round: RoundNumber = Field(description="The round concerned; 0 before round 1")
    done: Count = Field(description="Number that have joined or contributed; 0 if nothing is counted")
    total: Count = Field(description="Number required")


class SumStep(Resource):
    """The survivor's next message in a secure sum: its signature of the list of survivors, or its shares."""

    assignment: AssignmentId
    round: RoundNumber
    stage: Literal[SumStage.AGREE, SumStage.RELEASE]
    context: Digest = Field(description="Digest of the roster")
    survivors: tuple[ParticipantName, ...] = Field(max_length=64)
    signatures: Octets | None = Field(
        description="With the stage release: the signatures of the list, place ‖ signature for each, in hexadecimal"
    )


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
    prekeys: Count | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="The participant's unused one-time keys for secure sums, if the experiment has them",
    )
    step: SumStep | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="The participant's next message in a secure sum, after its contribution",
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


class Enrolment(Resource):
    """A code that admits one participant. It is shown only once."""

    id: EnrolmentId = Field(description="Id of the code; it does not admit anybody")
    group: Line | None
    approval: bool
    code: Line = Field(description="The first four digits of this server's `instance`, a dot, and the secret")
    expires_at: datetime
    command: Line = Field(description="Command for the participant to run; it prompts for the code")


class EnrolmentInfo(Resource):
    """State of a code. The code itself is not stored."""

    id: EnrolmentId
    group: Line | None
    approval: bool = Field(description="true: a participant that joins with it needs approval")
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = Field(description="Time at which a participant joined with it")
    used_by: Line | None = Field(description="Display name of the participant that joined with it")
    revoked_at: datetime | None = Field(description="Time at which it was revoked, unused")
    refused: int = Field(
        ge=0, lt=2**63, description="Number of uses after the first; above 0, somebody else has the code too"
    )


class EnrolmentPage(Page[EnrolmentInfo]):
    """Codes of an experiment, newest first."""


class Enrolled(Resource):
    """A new participant and its token. The token is shown only once."""

    participant: ParticipantId = Field(description="Id of the participant")
    name: ParticipantName = Field(description="Name in paths, folders and the ledger; made from `display_name`")
    display_name: DisplayName
    experiment: ExperimentId = Field(description="Id of the experiment")
    token: TokenText


class Invitation(Resource):
    """The experiment that an unused code admits to, for a site that decides whether to take part."""

    experiment: ExperimentId = Field(description="Id of the experiment")
    name: Line = Field(description="Name of the experiment")
    state: ExperimentState
    spec: SpecificationJson = Field(description="The specification with all defaults")
    base_digest: Digest | None = Field(description="Digest of the base model; null until the server has loaded it")
    shapes: dict[str, list[int]] | None = Field(
        description="Shapes of the trainable parameters by name; null until the server has loaded the model"
    )
    approval: bool = Field(description="true: a participant that joins with the code waits for approval")
    expires_at: datetime = Field(description="Time at which the code expires")


class EnrolmentCode(NamedTuple):
    """A parsed code. ``issuer`` identifies the server that created it."""

    issuer: str
    secret: str

    @classmethod
    def read(cls, text: str) -> EnrolmentCode:
        """Parses a code; raises ``enrolment.invalid``."""
        named = _NAMING.fullmatch(text)
        if named is None:
            detail = f"a code begins with {DIGITS} hexadecimal digits and a dot; check it, or ask for a new one"
            raise FerretError("enrolment.invalid", detail)
        return cls(named["issuer"], named["secret"])

    @classmethod
    def of(cls, instance: str, secret: str) -> EnrolmentCode:
        """Returns the code that the server ``instance`` creates from the secret."""
        return cls(instance[:DIGITS], secret)

    def names_another(self, instance: str) -> bool:
        """True if the code was created by another server than ``instance``."""
        return self.issuer != instance[:DIGITS]

    def __str__(self) -> str:
        return f"{self.issuer}.{self.secret}"
