"""One poller for all who follow an experiment: it looks once per interval and hands what it found to each of them."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from sqlalchemy.exc import OperationalError

from ferret_api.events.event_batch import Look, Page
from ferret_core.protocol.errors import FerretError

logger = logging.getLogger(__name__)

MOST_WAITING = 64
"""Pages that wait for a subscriber; one that is further behind is dropped, and resumes by number when it reconnects."""
TOGETHER = 10
"""Subscribers woken in one turn of the event loop, so that requests in between wait for milliseconds only."""
PING_SECONDS = 15.0
"""Proxies and clients take a connection that is silent for longer for a broken one (HTML standard, section 9.2.7)."""


class Subscription:
    """One follower: pages of events with numbers above ``start``, in order, until it ends."""

    def __init__(self, start: int) -> None:
        self.start = start
        self._over = False
        # One place more than pages may take: for the end.
        self._waiting: asyncio.Queue[Page | None] = asyncio.Queue(MOST_WAITING + 1)

    def put(self, page: Page) -> bool:
        """False if too many wait already."""
        if self._waiting.qsize() >= MOST_WAITING:
            return False
        self._waiting.put_nowait(page)
        return True

    def end(self) -> None:
        """Nothing comes behind what waits now."""
        if not self._over:
            self._over = True
            self._waiting.put_nowait(None)

    async def pages(self) -> AsyncIterator[Page]:
        """Each page once, and an empty one now and then."""
        while (page := await self._waiting.get()) is not None:
            yield page


class Feed:
    """Polls from event ``position`` on as long as there are subscriptions. Used on the event loop alone.

    ``look`` reads what comes behind a number; ``ended`` is called when it ends by itself.
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
        # In a context of its own: its logs are about no request.
        self._task = asyncio.get_running_loop().create_task(self._run(), context=contextvars.Context())

    @property
    def followed(self) -> bool:
        return bool(self._subscriptions)

    def subscribe(self) -> Subscription:
        """Gets every event behind its ``start``."""
        subscription = Subscription(self._position)
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        self._subscriptions.discard(subscription)

    def stop(self) -> None:
        """Ends it without a word: for when nobody follows any more."""
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
        """Whether the experiment has ended."""
        try:
            page, _, over = await self._look(self._position)
        except OperationalError as error:
            logger.warning("no look for new events, the database failed: %s", error.orig)
            return False
        if page.events or time.monotonic() - self._spoke_at >= PING_SECONDS:
            self._position = page.last(self._position)
            await self._hand_out(page)
        return over

    async def _hand_out(self, page: Page) -> None:
        self._spoke_at = time.monotonic()
        for number, subscription in enumerate([*self._subscriptions], 1):
            if not subscription.put(page) and subscription in self._subscriptions:
                self._subscriptions.discard(subscription)
                subscription.end()
                self.dropped += 1
            if number % TOGETHER == 0:
                await asyncio.sleep(0)
