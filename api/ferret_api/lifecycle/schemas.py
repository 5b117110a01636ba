"""Request bodies of the actions on an experiment."""

from __future__ import annotations

from pydantic import Field

from ferret_api.schemas import Command
from ferret_core.protocol.limits import MAX_ROUNDS


class Extension(Command, json_schema_extra={"examples": [{"rounds": 10, "expected_rounds": 20}]}):
    """Request for more rounds."""

    rounds: int = Field(ge=1, le=MAX_ROUNDS, description="Rounds to add")
    expected_rounds: int | None = Field(
        default=None,
        ge=1,
        le=MAX_ROUNDS,
        description="Number of rounds before the extension; with it, a repeated request adds rounds only once",
    )
