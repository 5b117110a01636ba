"""What all answers of the REST API share: frozen models, pages of lists, and how errors look.

The API builds a model from a table's row or from a dictionary, and the SDK reads the same model from JSON. Members that
a newer server adds are ignored. What the SDK uses as a path, an address or a header is checked here to be spelt as one,
numbers that it waits or reserves memory for are bounded, and names are safe to show in a terminal.
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
"""Where the REST API begins, on every server."""

RoundNumber = Annotated[int, Field(ge=0, le=MAX_ROUNDS)]
Bytes = Annotated[int, Field(ge=0, lt=2**63)]
Count = Annotated[int, Field(ge=0, lt=2**31)]


class Resource(BaseModel):
    """An answer of the REST API."""

    model_config = ConfigDict(frozen=True, from_attributes=True, extra="ignore")


class Page(Resource, Generic[Item]):
    """One page of a list. Pass ``next_cursor`` as ``cursor`` to get the next page; it is null on the last page."""

    items: list[Item]
    next_cursor: str | None


def always_sent(schema: Json) -> None:
    """Marks all fields of a JSON schema as required. The server always sends them; the defaults serve a reader of a
    smaller resource as this one."""
    for field in schema["properties"].values():
        field.pop("default", None)
    schema["required"] = [*schema["properties"]]


class FailureTitle(Resource):
    """Why an experiment failed, as a code and a short title."""

    code: Line = Field(description="Stable name of the problem")
    title: Line


class Failure(FailureTitle, json_schema_extra=always_sent):
    """Why an experiment, a round or an assignment failed."""

    status: int = Field(default=500, description="HTTP status that the problem has in answers")
    detail: Words = Field(default="", description="What is wrong, with the value, and what to do next")
    errors: list[FieldError] = Field(default_factory=list, description="The first 20 of the wrong fields")
    errors_omitted: int = Field(default=0, description="How many more fields are wrong")


class Problem(Resource):
    """A problem document (RFC 9457). Its media type is ``application/problem+json``."""

    type: str = Field(description="`urn:ferret:problem:` followed by the code")
    title: str
    status: int
    detail: str = Field(description="What is wrong, with the value, and what to do next")
    instance: str = Field(description="Path of the request")
    code: str = Field(description="Stable name of the problem, e.g. `experiment.not_found`")
    request_id: str = Field(description="Id of the request, also in the header `X-Request-ID` and in the server's log")
    errors: list[FieldError] = Field(
        description="The first 20 of the wrong fields, if the problem is about fields; long values are cut"
    )
    errors_omitted: int = Field(description="How many more fields are wrong")
    current_round: int | None = Field(
        default=None, description="With `round.closed`: the current round; null if no round follows"
    )


class RevocationCount(Resource):
    """How many members of a group a request has revoked."""

    revoked: int = Field(ge=0, lt=2**63, description="Those that were revoked before are not counted")
