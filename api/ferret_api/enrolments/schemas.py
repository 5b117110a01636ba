"""Enrolment codes, and what they become."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from ferret_api.schemas import Command, GroupName, Page, Resource
from ferret_core.protocol.display_name import DisplayName
from ferret_core.protocol.ids import PublicKey
from ferret_core.protocol.signatures import require_public_key

DAY = 24 * 3600


class NewEnrolment(
    Command, json_schema_extra={"examples": [{"expires_seconds": 604800, "group": "north", "approval": True}]}
):
    """Asks for a code with which one participant can join."""

    expires_seconds: int = Field(default=DAY, ge=1, le=30 * DAY, description="Seconds until the code expires")
    group: GroupName | None = None
    approval: bool = Field(default=False, description="Who joins with the code takes part once it is approved")


class Enrolment(Resource):
    """A code for one participant. It is shown only once."""

    id: str = Field(description="Id of the code, which opens nothing")
    group: str | None
    approval: bool
    code: str = Field(description="The first four digits of this server's `instance`, a dot, and the secret")
    expires_at: datetime
    command: str = Field(description="Command for the participant to run, which then asks for the code")


class EnrolmentInfo(Resource):
    """What became of a code; the code itself is kept nowhere."""

    id: str
    group: str | None
    approval: bool = Field(description="Whether who joins with it has to be approved")
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = Field(description="When somebody joined with it")
    used_by: str | None = Field(description="Display name of the participant that joined with it")
    revoked_at: datetime | None = Field(description="When it was revoked, unused")
    refused: int = Field(description="How often it was shown again after it was used: somebody else has it too")


class EnrolmentPage(Page[EnrolmentInfo]):
    """Codes of an experiment, the newest first."""


class GroupOfCodes(Command, json_schema_extra={"examples": [{"group": "north"}]}):
    """Codes that belong together."""

    group: GroupName


class NewParticipant(
    Command, json_schema_extra={"examples": [{"code": "4711.k3J9dQ2mXv8r", "display_name": "clinic 7"}]}
):
    """Turns a code into a participant."""

    code: str = Field(min_length=1, max_length=200)
    display_name: DisplayName
    public_key: Annotated[PublicKey, AfterValidator(require_public_key)] | None = Field(
        default=None, description="Ed25519 key that every contribution is then signed by; without one none is signed"
    )


class Enrolled(Resource):
    """A participant and its token. The token is shown only once."""

    participant: str = Field(description="Id of the participant")
    name: str = Field(description="What paths, folders and the ledger call it; follows from `display_name`")
    display_name: str
    experiment: str = Field(description="Id of the experiment")
    token: str
