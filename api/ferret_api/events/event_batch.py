"""Some events in a row, read in one transaction and already in the form in which they travel."""

from __future__ import annotations

from typing import NamedTuple

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from ferret_core.protocol.resources.events import Event
from ferret_db.database import Database
from ferret_db.repositories import events, experiments

MOST = 100
"""Events in a page."""


class Page(NamedTuple):
    """Server-sent events by their numbers, and their types; without any it is a sign of life."""

    events: tuple[tuple[int, bytes], ...] = ()
    types: frozenset[str] = frozenset()

    @property
    def full(self) -> bool:
        """Whether there may be more."""
        return len(self.events) == MOST

    def last(self, otherwise: int) -> int:
        """Number of the last event."""
        return self.events[-1][0] if self.events else otherwise

    def behind(self, after: int) -> bytes:
        """Those with a number above ``after``; if there are none, a comment."""
        return b"".join(event for number, event in self.events if number > after) or KEEPALIVE_COMMENT


class Look(NamedTuple):
    """What one look found: a page, the number of the experiment's newest event, whether the page ends the stream."""

    page: Page
    newest: int
    over: bool


def look(database: Database, experiment_id: str, after: int) -> Look:
    """The events behind number ``after``; raises ``experiment.not_found``."""
    with database.read() as s:
        experiment = experiments.get(s, experiment_id)
        found = events.after(s, experiment_id, after, MOST)
        encoded = tuple((row.seq, _encoded(Event.model_validate(row))) for row in found)
        page = Page(encoded, frozenset(row.type for row in found))
        newest = experiment.event_seq
        return Look(page, newest, experiment.state.finished and page.last(after) >= newest)


def _encoded(event: Event) -> bytes:
    return format_sse_event(data_str=event.model_dump_json(), event=event.type, id=str(event.seq))
