"""Endpoints for the events of an experiment: a list, and a stream of server-sent events."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header, HTTPException

from ferret_api.access import Viewer
from ferret_api.events import streams
from ferret_api.events.streams import NOT_HELD_BACK, EventStream, FeedsDep, Place
from ferret_api.http.errors import problems
from ferret_api.schemas import MAX_INTEGER, PAGE, PREFIX, After, ExperimentId, Limit
from ferret_core.protocol.resources.events import Event, EventPage
from ferret_db.repositories import events, experiments

router = APIRouter(prefix=f"{PREFIX}/experiments/{{experiment_id}}/events", tags=["events"])

LastEventId = Annotated[
    int | None,
    Header(
        alias="Last-Event-ID",
        ge=0,
        le=MAX_INTEGER,
        description="Sent by browsers that reconnect; takes precedence over `after`",
    ),
]
_ITEM = {
    "type": "object",
    "required": ["id", "event", "data"],
    "properties": {
        "id": {"type": "string"},
        "event": {"type": "string"},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {"$ref": "#/components/schemas/Event"},
        },
    },
}


@router.get("", operation_id="list_events", responses=problems("experiment.not_found"))
def list_events(experiment_id: ExperimentId, caller: Viewer, after: After = 0, limit: Limit = PAGE) -> EventPage:
    """Lists the events with a number above `after`, in order. Requires the role viewer."""
    with caller.database.read() as s:
        experiments.get(s, experiment_id)
        return EventPage(items=[Event.model_validate(event) for event in events.after(s, experiment_id, after, limit)])


def _start(experiment_id: ExperimentId, caller: Viewer, after: After = 0, last_event_id: LastEventId = None) -> int:
    """Returns the number after which the stream starts. It runs before the stream, so that it can raise problems."""
    start = after if last_event_id is None else last_event_id
    with caller.database.read() as s:
        experiment = experiments.get(s, experiment_id)
        if experiment.state.finished and start >= experiment.last_event_seq:
            # Browsers reconnect after any other status (HTML standard, section 9.2.3).
            raise HTTPException(204)
    return start


@router.get(
    "/stream",
    operation_id="stream_events",
    response_class=EventStream,
    openapi_extra={"responses": {"200": {"content": {"text/event-stream": {"itemSchema": _ITEM}}}}},
    responses={
        204: {"description": "The experiment has ended and there are no more events: do not reconnect"},
        **problems("experiment.not_found", "stream.refused"),
    },
)
async def stream_events(feeds: FeedsDep, start: Annotated[int, Depends(_start)], follower: Place) -> EventStream:
    """Streams each event as it happens. `id` is its number, `event` its type, `data` the same JSON as in the list.

    The stream resumes after `Last-Event-ID` or `after`, and ends after the experiment's last event. The server
    disconnects a reader that falls too far behind; it can reconnect and resume. A reader that loses access to the
    experiment is disconnected within seconds, and refused when it reconnects. Requires the role viewer.
    """
    return EventStream(streams.follow(feeds, follower, start), headers=NOT_HELD_BACK)
