"""Parameters of paths, queries and headers shared by endpoints, and the base of request bodies."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from ferret_core.protocol.display_name import LONGEST, DisplayName
from ferret_core.protocol.resources.base import API_PATH

PREFIX = API_PATH
MAX_INTEGER = 2**31 - 1
OCTETS = "application/octet-stream"
BINARY = {OCTETS: {"schema": {"type": "string", "format": "binary"}}}
REF = "#/components/schemas/{model}"

ExperimentId = Annotated[str, Path(max_length=64, description="Id of the experiment, e.g. `exp_0123456789abcdef`")]
RoundNumber = Annotated[int, Path(ge=1, le=MAX_INTEGER, description="Number of the round, from 1")]
OfGroup = Annotated[str | None, Query(max_length=LONGEST, description="Only members of this group")]
ParticipantName = Annotated[str, Path(max_length=64, description="Name of a participant, e.g. `clinic-7`")]
OfRound = Annotated[int | None, Query(ge=1, le=MAX_INTEGER, description="Only this round")]

GroupName = Annotated[DisplayName, Field(description="Label shared by related codes, e.g. of one network")]

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="Repeating a request with the same key and body returns the first response",
    ),
]


class Command(BaseModel):
    """A request body; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
