"""Base of all responses of the REST API: frozen models, pages of lists, and problem documents.

The API builds a model from a table's row or from a dictionary, and the SDK reads the same model from JSON. Fields that
a newer server adds are ignored. Values that the SDK uses as a path, an address or a header are validated here. Numbers
that determine a wait or an allocation are bounded, and names are safe to print in a terminal.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ferret_core.protocol.errors import FieldError
from ferret_core.protocol.limits import MAX_ROUNDS
from ferret_core.protocol.sanitize import Line, Words

Item = TypeVar("Item")
Json = dict[str, Any]

API_PATH = "/api/v1"
"""Path prefix of the REST API, the same on every server."""

RoundNumber = Annotated[int, Field(ge=0, le=MAX_ROUNDS)]
Bytes = Annotated[int, Field(ge=0, lt=2**63)]
Count = Annotated[int, Field(ge=0, lt=2**31)]


class Resource(BaseModel):
    """A response of the REST API."""

    # Built at first use: an API process needs few of them at once, and each takes memory.
    model_config = ConfigDict(defer_build=True, frozen=True, from_attributes=True, extra="ignore")


class Page(Resource, Generic[Item]):
    """One page of a list. Pass ``next_cursor`` as ``cursor`` to get the next page; it is null on the last page."""

    items: list[Item]
    next_cursor: str | None


def always_sent(schema: Json) -> None:
    """Marks all fields of a JSON schema as required. The server always sends them; the defaults serve a reader of a
    smaller resource with the same model.
    """
    for field in schema["properties"].values():
        field.pop("default", None)
    schema["required"] = [*schema["properties"]]


class FailureTitle(Resource):
    """Reason for an experiment's failure, as a code and a short title."""

    code: Line = Field(description="Stable name of the problem")
    title: Line


class Failure(FailureTitle, json_schema_extra=always_sent):
    """Reason for the failure of an experiment, a round or an assignment."""

    status: int = Field(default=500, description="HTTP status of the problem in responses")
    detail: Words = Field(default="", description="The fault, with the value and the next step")
    errors: list[FieldError] = Field(default_factory=list, description="The first 20 invalid fields")
    errors_omitted: int = Field(default=0, description="Number of further invalid fields")


class Problem(Resource):
    """A problem document (RFC 9457). Its media type is ``application/problem+json``."""

    type: str = Field(description="`urn:ferret:problem:` followed by the code")
    title: str
    status: int
    detail: str = Field(description="The fault, with the value and the next step")
    instance: str = Field(description="Path of the request")
    code: str = Field(description="Stable name of the problem, e.g. `experiment.not_found`")
    request_id: str = Field(description="Id of the request, also in the header `X-Request-ID` and in the server's log")
    errors: list[FieldError] = Field(
        description="The first 20 invalid fields, if the problem is about fields; long values are cut"
    )
    errors_omitted: int = Field(description="Number of further invalid fields")
    current_round: int | None = Field(
        default=None, description="With `round.closed`: the current round; null if no round follows"
    )


class RevocationCount(Resource):
    """Result of revoking the members of a group."""

    revoked: int = Field(ge=0, lt=2**63, description="Number of newly revoked members")
