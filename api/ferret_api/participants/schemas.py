"""Request bodies of administrators and participants."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from ferret_api.schemas import MAX_INTEGER, Command, GroupName
from ferret_core.protocol.errors import PROBLEMS
from ferret_core.protocol.sanitize import Words

Fence = Annotated[int, Field(ge=0, le=MAX_INTEGER, description="The lease's `fence`")]


def _known(code: str) -> str:
    if code not in PROBLEMS:
        raise ValueError("is not a known problem code")
    return code


class Revocation(Command, json_schema_extra={"examples": [{"reason": "the contract has ended"}]}):
    """Reason for removing a participant. The participant receives it."""

    reason: Words | None = Field(default=None, min_length=1, max_length=500)


class Refusal(Command, json_schema_extra={"examples": [{"reason": "not the site that was invited"}]}):
    """Reason for refusing a participant. The participant receives it."""

    reason: Words | None = Field(default=None, min_length=1, max_length=500)


class GroupRevocation(Revocation, json_schema_extra={"examples": [{"group": "north", "reason": "the pilot is over"}]}):
    """Group to remove, and the reason. Its participants receive the reason."""

    group: GroupName


class Heartbeat(Command, json_schema_extra={"examples": [{"fence": 1}]}):
    """Heartbeat of a working participant."""

    fence: Fence


class AssignmentFailure(
    Command,
    json_schema_extra={
        "examples": [{"fence": 1, "code": "dataset.invalid", "detail": "line 7 has no field instruction"}]
    },
):
    """Failure report of a participant that cannot do its assignment."""

    fence: Fence
    code: Annotated[str, AfterValidator(_known)] = Field(description="Code of the problem, e.g. `dataset.invalid`")
    detail: Words = Field(min_length=1, max_length=2000)
