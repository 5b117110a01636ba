"""Following an experiment: what has happened is read in pages, what happens comes from the experiment's one poller."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ferret_api.events.feeds import Feeds


async def follow(feeds: Feeds, experiment_id: str, after: int) -> AsyncIterator[bytes]:
    """Server-sent events behind ``after`` in order, until the experiment's last or until the process stops."""
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
