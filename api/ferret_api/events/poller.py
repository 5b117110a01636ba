"""Poller of an experiment's events, which reads once per interval for all subscribers."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from sqlalchemy.exc import OperationalError

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.events import Event
from ferret_db.database import Database
from ferret_db.repositories import events, experiments

MOST_EVENTS = 100
"""Maximum number of events in a page."""


class EventBatch(NamedTuple):
    """Server-sent events with their numbers, and their types. An empty page is a keep-alive."""

    events: tuple[tuple[int, bytes], ...] = ()
    types: frozenset[str] = frozenset()

    @property
    def full(self) -> bool:
        """True if more events may follow."""
        return len(self.events) == MOST_EVENTS

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
        found = events.after(s, experiment_id, after, MOST_EVENTS)
        encoded = tuple((row.seq, _encoded(Event.model_validate(row))) for row in found)
        page = EventBatch(encoded, frozenset(row.type for row in found))
        newest = experiment.last_event_seq
        return Look(page, newest, experiment.state.finished and page.last(after) >= newest)


def _encoded(event: Event) -> bytes:
    return format_sse_event(data_str=event.model_dump_json(), event=event.type, id=str(event.seq))


logger = logging.getLogger(__name__)

MOST_WAITING = 64
"""Maximum pages in a subscriber's queue. Beyond it the subscriber is dropped; it resumes when it reconnects."""
TOGETHER = 10
"""Subscribers woken per iteration of the event loop, so that requests in between wait only for milliseconds."""
PING_SECONDS = 15.0
"""Interval of keep-alives. Proxies and clients may drop a silent connection (HTML standard, section 9.2.7)."""


class Subscription:
    """One subscriber's queue of pages: all events with numbers above ``start``, in order."""

    def __init__(self, start: int) -> None:
        self.start = start
        self._over = False
        # One place more than the pages, for the end marker.
        self._waiting: asyncio.Queue[EventBatch | None] = asyncio.Queue(MOST_WAITING + 1)

    def put(self, page: EventBatch) -> bool:
        """Queues a page; returns False if the queue is full."""
        if self._waiting.qsize() >= MOST_WAITING:
            return False
        self._waiting.put_nowait(page)
        return True

    def end(self) -> None:
        """Ends the subscription after the pages in the queue."""
        if not self._over:
            self._over = True
            self._waiting.put_nowait(None)

    async def pages(self) -> AsyncIterator[EventBatch]:
        """Yields each page, and an empty page as a keep-alive."""
        while (page := await self._waiting.get()) is not None:
            yield page


class EventPoller:
    """Poller that reads events after ``position`` while there are subscriptions. Use it only on the event loop.

    ``look`` reads the events after a number. ``ended`` is called when the poller ends by itself.
    """

    def __init__(
        self,
        look: Callable[[int], Awaitable[Look]],
        position: int,
        seconds: float,
        stopping: asyncio.Event,
        ended: Callable[[], None],
    ) -> None:
        self.dropped = 0
        self._look = look
        self._position = position
        self._seconds = seconds
        self._stopping = stopping
        self._ended = ended
        self._subscriptions: set[Subscription] = set()
        self._spoke_at = time.monotonic()
        # A separate context, so that its logs name no request.
        self._task = asyncio.get_running_loop().create_task(self._run(), context=contextvars.Context())

    @property
    def followed(self) -> bool:
        return bool(self._subscriptions)

    def subscribe(self) -> Subscription:
        """Returns a subscription to every event after its ``start``."""
        subscription = Subscription(self._position)
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)

    def stop(self) -> None:
        """Stops the poller without ending subscriptions. Use it without subscriptions."""
        self._task.cancel()

    async def _run(self) -> None:
        try:
            over = False
            while not over:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), self._seconds)
                over = self._stopping.is_set() or await self._poll()
        except FerretError as error:
            logger.info("the event streams end: %s", error.detail)
        except Exception:
            logger.exception("the event streams end")
        self._ended()
        for subscription in self._subscriptions:
            subscription.end()

    async def _poll(self) -> bool:
        try:
            page, _, over = await self._look(self._position)
        except OperationalError as error:
            logger.warning("could not read new events, the database failed: %s", error.orig)
            return False
        if page.events or time.monotonic() - self._spoke_at >= PING_SECONDS:
            self._position = page.last(self._position)
            await self._hand_out(page)
        return over

    async def _hand_out(self, page: EventBatch) -> None:
        self._spoke_at = time.monotonic()
        for number, subscription in enumerate([*self._subscriptions], 1):
            if not subscription.put(page) and subscription in self._subscriptions:
                self._subscriptions.discard(subscription)
                subscription.end()
                self.dropped += 1
            if number % TOGETHER == 0:
                await asyncio.sleep(0)
