"""Event streams of this process: their limits, and one poller for each followed experiment."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Generator
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Annotated, Self, TypeVar

import anyio.to_thread
from fastapi import Depends, Request
from fastapi.responses import StreamingResponse

from ferret_api.access import Session, UserBearer
from ferret_api.auth.admin_token import AdminToken
from ferret_api.context import Context
from ferret_api.events.access_check import AccessCheck, Claim, StreamReader, permitted
from ferret_api.events.poller import EventPoller, Look, Subscription, look
from ferret_api.schemas import ExperimentId
from ferret_core.protocol.errors import FerretError
from ferret_db.database import Database

R = TypeVar("R")

READERS = 4
"""Maximum number of threads that read for streams. The others serve requests."""


class EventPollers:
    """Event streams of the process: at most ``most`` in total, and ``most_per_token`` with one token or session.

    Use it only on the event loop."""

    def __init__(
        self,
        database: Database,
        admin: AdminToken,
        seconds: float,
        most: int,
        most_per_token: int,
        stopping: asyncio.Event,
    ) -> None:
        self.looks = 0
        """Number of database reads, by pollers and by streams that catch up."""
        self.most = most
        self.most_per_token = most_per_token
        self._database = database
        self._admin = admin
        self._seconds = seconds
        self._stopping = stopping
        self._readers = anyio.CapacityLimiter(READERS)
        self._feeds: dict[str, EventPoller] = {}
        self._streams = Counter[str]()
        self._watch = AccessCheck(self._permitted)
        self._dropped = 0

    @classmethod
    def of(cls, context: Context) -> Self:
        """Returns the streams of a process with the limits of its settings."""
        sizing = context.settings.sizing
        return cls(
            context.database,
            context.admin,
            sizing.stream_poll_seconds,
            most=sizing.max_streams,
            most_per_token=sizing.max_streams_per_token,
            stopping=context.stopping,
        )

    @property
    def streams(self) -> int:
        """Number of open streams."""
        return self._streams.total()

    @property
    def dropped(self) -> int:
        """Number of streams ended because their reader was too slow."""
        return self._dropped + sum(feed.dropped for feed in self._feeds.values())

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    @contextmanager
    def place(self, claim: Claim) -> Generator[StreamReader]:
        """Reserves a slot for one stream and watches its access; raises ``stream.refused`` if there are too many."""
        token = claim.credential
        if self.streams >= self.most:
            raise FerretError("stream.refused", f"{self.most} event streams are open, the maximum of this process")
        if self._streams[token] >= self.most_per_token:
            detail = f"{self.most_per_token} event streams are open with this token: close some"
            raise FerretError("stream.refused", detail)
        self._streams[token] += 1
        try:
            with self._watch.over(claim) as follower:
                yield follower
        finally:
            self._streams[token] -= 1
            if not self._streams[token]:
                del self._streams[token]

    async def look(self, experiment_id: str, after: int) -> Look:
        """Reads one page of events from the database."""
        self.looks += 1
        return await self.read(lambda: look(self._database, experiment_id, after))

    async def read(self, reading: Callable[[], R]) -> R:
        """Runs ``reading`` in one of the threads for streams."""
        return await anyio.to_thread.run_sync(reading, limiter=self._readers)

    async def _permitted(self, claims: Collection[Claim]) -> Collection[Claim]:
        return await self.read(lambda: permitted(self._database, self._admin, claims))

    @contextmanager
    def subscription(self, experiment_id: str, newest: int) -> Generator[Subscription]:
        """Subscribes to new events. ``newest`` is the number of the newest event that the caller has read."""
        feed = self._feeds.get(experiment_id)
        if feed is None:
            ended = partial(self._ended, experiment_id)
            feed = EventPoller(partial(self.look, experiment_id), newest, self._seconds, self._stopping, ended)
            self._feeds[experiment_id] = feed
        subscription = feed.subscribe()
        try:
            yield subscription
        finally:
            feed.unsubscribe(subscription)
            if not feed.followed:
                feed.stop()
                if self._feeds.get(experiment_id) is feed:
                    self._ended(experiment_id)

    def _ended(self, experiment_id: str) -> None:
        self._dropped += self._feeds.pop(experiment_id).dropped


async def _feeds(request: Request) -> EventPollers:
    return request.app.state.feeds


FeedsDep = Annotated[EventPollers, Depends(_feeds)]


NOT_HELD_BACK = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}  # the second is for nginx


class EventStream(StreamingResponse):
    """A response of encoded events. FastAPI's own class would encode every event for every reader."""

    media_type = "text/event-stream"


async def _place(
    experiment_id: ExperimentId, feeds: FeedsDep, bearer: UserBearer, session: Session
) -> AsyncGenerator[StreamReader]:
    with feeds.place(Claim(bearer.credentials if bearer else session or "", experiment_id)) as follower:
        yield follower


Place = Annotated[StreamReader, Depends(_place)]
"""Slot that is held until the stream ends; raises ``stream.refused`` if there are too many streams."""


async def follow(feeds: EventPollers, follower: StreamReader, after: int) -> AsyncIterator[bytes]:
    """Yields server-sent events after number ``after``, in order.

    The stream ends after the experiment's last event, when the process stops, or when the follower is refused. A
    refused follower gets no further events, not even queued ones."""
    async with aclosing(_events(feeds, follower, after)) as events:
        async for event in events:
            if follower.refused:
                return
            yield event


async def _events(feeds: EventPollers, follower: StreamReader, after: int) -> AsyncGenerator[bytes]:
    experiment_id = follower.claim.experiment_id
    while True:
        page, newest, over = await feeds.look(experiment_id, after)
        if page.events:
            yield page.behind(after)
            after = page.last(after)
        if over or feeds.stopping:
            return
        if not page.full:
            break
    with feeds.subscription(experiment_id, newest) as live:
        follower.waits(live.end)
        # The events that the poller distributed between that read and the subscription.
        while after < live.start:
            page, _, over = await feeds.look(experiment_id, after)
            yield page.behind(after)
            after = page.last(live.start)
            if over:
                return
        async for page in live.pages():
            yield page.behind(after)
            after = max(after, page.last(after))
