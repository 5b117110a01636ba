"""Enrolment codes, and the credentials of a new participant."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_core.protocol.display_name import DisplayName
from ferret_core.protocol.ids import EnrolmentId, ExperimentId, ParticipantId, ParticipantName, TokenText
from ferret_core.protocol.resources.base import Page, Resource
from ferret_core.protocol.sanitize import Line


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
