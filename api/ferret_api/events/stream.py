"""Following an experiment: what has happened is read in pages, what happens comes from the experiment's one poller."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from ferret_api.events.access_check import Follower
from ferret_api.events.streams import Feeds


async def follow(feeds: Feeds, follower: Follower, after: int) -> AsyncIterator[bytes]:
    """Server-sent events behind ``after`` in order, until the experiment's last, until the process stops or until the
    follower is refused, who then gets nothing that waited either."""
    async with aclosing(_events(feeds, follower, after)) as events:
        async for event in events:
            if follower.refused:
                return
            yield event


async def _events(feeds: Feeds, follower: Follower, after: int) -> AsyncGenerator[bytes]:
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
        # What the poller handed out between that look and the subscription.
        while after < live.start:
            page, _, over = await feeds.look(experiment_id, after)
            yield page.behind(after)
            after = page.last(live.start)
            if over:
                return
        async for page in live.pages():
            yield page.behind(after)
            after = max(after, page.last(after))
