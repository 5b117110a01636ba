"""Event stream of an experiment: past events are read in pages, new events come from the experiment's poller."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from ferret_api.events.access_check import StreamReader
from ferret_api.events.streams import EventPollers


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
