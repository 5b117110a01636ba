"""What a request to move an experiment on holds."""

from __future__ import annotations

from pydantic import Field

from api.schemas import Command
from ferret_core.protocol.spec import MAX_ROUNDS


class Extension(Command):
    """Asks for more rounds."""

    rounds: int = Field(ge=1, le=MAX_ROUNDS, description="Rounds to add")
    expected_rounds: int | None = Field(
        default=None,
        ge=1,
        le=MAX_ROUNDS,
        description="How many the experiment has before: sent twice, the request then counts once",
    )
