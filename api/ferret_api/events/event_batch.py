"""Pages of consecutive events, read in one transaction and encoded as server-sent events."""

from __future__ import annotations

from typing import NamedTuple

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from ferret_core.protocol.resources.events import Event
from ferret_db.database import Database
from ferret_db.repositories import events, experiments

MOST = 100
"""Maximum number of events in a page."""


class EventBatch(NamedTuple):
    """Server-sent events with their numbers, and their types. An empty page is a keep-alive."""

    events: tuple[tuple[int, bytes], ...] = ()
    types: frozenset[str] = frozenset()

    @property
    def full(self) -> bool:
        """True if more events may follow."""
        return len(self.events) == MOST

    def last(self, otherwise: int) -> int:
        """Returns the number of the last event, or ``otherwise`` for an empty page."""
        return self.events[-1][0] if self.events else otherwise

    def behind(self, after: int) -> bytes:
        """Returns the events with a number above ``after``; a keep-alive comment without any."""
        return b"".join(event for number, event in self.events if number > after) or KEEPALIVE_COMMENT


class Look(NamedTuple):
    """Result of one query: a page, the number of the newest event, and True if the page ends the stream."""

    page: EventBatch
    newest: int
    over: bool


def look(database: Database, experiment_id: str, after: int) -> Look:
    """Reads the events after number ``after``; raises ``experiment.not_found``."""
    with database.read() as s:
        experiment = experiments.get(s, experiment_id)
        found = events.after(s, experiment_id, after, MOST)
        encoded = tuple((row.seq, _encoded(Event.model_validate(row))) for row in found)
        page = EventBatch(encoded, frozenset(row.type for row in found))
        newest = experiment.last_event_seq
        return Look(page, newest, experiment.state.finished and page.last(after) >= newest)


def _encoded(event: Event) -> bytes:
    return format_sse_event(data_str=event.model_dump_json(), event=event.type, id=str(event.seq))
