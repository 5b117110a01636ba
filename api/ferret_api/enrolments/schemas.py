"""Request bodies for enrolment codes."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from ferret_api.schemas import Command, GroupName
from ferret_core.protocol.display_name import DisplayName
from ferret_core.protocol.ids import PublicKey
from ferret_core.protocol.signatures import require_public_key

DAY = 24 * 3600


class NewEnrolment(
    Command, json_schema_extra={"examples": [{"expires_seconds": 604800, "group": "north", "approval": True}]}
):
    """Request for a code that admits one participant."""

    expires_seconds: int = Field(default=DAY, ge=1, le=30 * DAY, description="Seconds until the code expires")
    group: GroupName | None = None
    approval: bool = Field(default=False, description="true: a participant that joins with it waits for approval")


class CodeGroup(Command, json_schema_extra={"examples": [{"group": "north"}]}):
    """Request about all codes of a group."""

    group: GroupName


class NewParticipant(
    Command, json_schema_extra={"examples": [{"code": "4711.k3J9dQ2mXv8r", "display_name": "clinic 7"}]}
):
    """Request to exchange a code for a participant."""

    code: str = Field(min_length=1, max_length=200)
    display_name: DisplayName
    public_key: Annotated[PublicKey, AfterValidator(require_public_key)] | None = Field(
        default=None,
        description=("Ed25519 key that must sign every contribution; without a key, contributions are not signed"),
    )
