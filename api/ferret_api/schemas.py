"""Parameters of paths, queries and headers shared by endpoints, and the base of request bodies."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from ferret_core.protocol.display_name import LONGEST, DisplayName
from ferret_core.protocol.resources.base import API_PATH, Json

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


Limit = Annotated[int, Query(ge=1, le=200, description="Items per page")]
Cursor = Annotated[
    str | None,
    Query(max_length=1000, description="`next_cursor` of the previous page; leave it out for the first page"),
]
After = Annotated[int, Query(ge=0, le=MAX_INTEGER, description="Only items after this number; 0 for all")]

PAGE = 50


SPECIFICATION: Json = {
    "name": "instructions at 8 kB",
    "rounds": 20,
    "model": {"source": "HuggingFaceTB/SmolLM2-135M-Instruct", "revision": "main"},
    "dataset": {"name": "dolly", "hub": "databricks/databricks-dolly-15k"},
    "participants": {"simulated": 20},
    "algorithm": {"name": "ferret", "bytes_per_round": 8192},
}
