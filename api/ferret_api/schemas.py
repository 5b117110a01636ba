"""What all answers share: frozen resources, pages, and the problem document."""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeVar

from fastapi import Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from ferret_core.protocol.display_name import LONGEST, DisplayName
from ferret_core.protocol.errors import FieldError

Item = TypeVar("Item")
PREFIX = "/api/v1"
MAX_INTEGER = 2**31 - 1
OCTETS = "application/octet-stream"
BINARY = {OCTETS: {"schema": {"type": "string", "format": "binary"}}}
REF = "#/components/schemas/{model}"

ExperimentId = Annotated[str, Path(max_length=64, description="Id of the experiment, e.g. `exp_0123456789abcdef`")]
RoundNumber = Annotated[int, Path(ge=1, le=MAX_INTEGER, description="Number of the round, from 1")]
OfGroup = Annotated[str | None, Query(max_length=LONGEST, description="Only what belongs to this group")]
ParticipantName = Annotated[str, Path(max_length=64, description="Name of a participant, e.g. `clinic-7`")]
OfRound = Annotated[int | None, Query(ge=1, le=MAX_INTEGER, description="Only this round")]

GroupName = Annotated[DisplayName, Field(description="A word for codes that belong together, e.g. of one network")]

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="Repeating a request with the same key and body gets the first answer again",
    ),
]


class Resource(BaseModel):
    """An answer, read from a table's row or built from several."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class Command(BaseModel):
    """A request body; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Revoked(Resource):
    """What revoking a group has changed."""

    revoked: int = Field(description="How many this request revoked; what was revoked before is not counted")


class Page(Resource, Generic[Item]):
    """One page of a list; pass ``next_cursor`` back as ``cursor`` for the next, null after the last."""

    items: list[Item]
    next_cursor: str | None


class Failure(Resource):
    """Why an experiment, a round or an assignment failed."""

    code: str
    title: str
    status: int
    detail: str
    errors: list[FieldError]
    errors_omitted: int = Field(default=0, description="How many more fields are wrong than `errors` tells of")


class Problem(Resource):
    """A problem document (RFC 9457), media type ``application/problem+json``."""

    type: str = Field(description="`urn:ferret:problem:` and the code")
    title: str
    status: int
    detail: str = Field(description="What is wrong, with the value, and what to do next")
    instance: str = Field(description="Path of the request")
    code: str = Field(description="Stable name of the problem, e.g. `experiment.not_found`")
    request_id: str = Field(description="The request's id, also in the header `X-Request-ID` and in the server's log")
    errors: list[FieldError] = Field(
        description="The first 20 of the offending fields, if the problem is about fields; long values are cut"
    )
    errors_omitted: int = Field(description="How many more fields are wrong than `errors` tells of")
    current_round: int | None = Field(
        default=None, description="With `round.closed`: the current round, null if there will be no more"
    )


Json = dict[str, Any]
