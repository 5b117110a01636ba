"""Events as the API shows them."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from ferret_api.schemas import Json, Resource


class Event(Resource):
    """Something that happened to an experiment; the same JSON in the list and in the stream."""

    seq: int = Field(description="1, 2, 3, … within the experiment; the stream's event id")
    type: str = Field(description="E.g. `round.committed`; the stream's event name")
    round: int | None
    data: Json
    time: datetime = Field(validation_alias="created_at")


class EventPage(Resource):
    """Events in order; ask again with the last `seq` as `after`."""

    items: list[Event]
