"""Events of an experiment, as a list and as a stream."""

from __future__ import annotations

from datetime import datetime

from pydantic import AliasChoices, Field

from ferret_core.protocol.resources.base import Json, Resource, RoundNumber
from ferret_core.protocol.sanitize import Line
from ferret_core.protocol.states import ExperimentState

_FINAL = frozenset(f"experiment.{state}" for state in ExperimentState if state.finished)


class Event(Resource):
    """An event of an experiment. The list and the stream send the same JSON."""

    seq: int = Field(
        ge=0, lt=2**63, description="1, 2, 3, … within the experiment; also the id of the event in the stream"
    )
    type: Line = Field(description="E.g. `round.committed`; also the name of the event in the stream")
    round: RoundNumber | None
    data: Json
    time: datetime = Field(validation_alias=AliasChoices("time", "created_at"))

    @property
    def final(self) -> bool:
        """true for an event that ends the experiment."""
        return self.type in _FINAL


class EventPage(Resource):
    """Events in order. Pass the last `seq` as `after` to get the next."""

    items: list[Event]
